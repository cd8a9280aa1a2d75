"""`python -m bench.peers`: see bench.peers.run."""

import sys

from bench.peers.run import main

sys.exit(main())

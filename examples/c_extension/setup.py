"""Headers alone: an extension links nothing of rdmeta's."""

from setuptools import Extension, setup

import rdmeta

routes = Extension("routes", ["routes.c"], include_dirs=[rdmeta.get_include()])
setup(name="routes", version="1", ext_modules=[routes])

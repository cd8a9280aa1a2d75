"""An extension needs the headers only: it links no library of rdmeta."""

from setuptools import Extension, setup

import rdmeta

routes = Extension("routes", ["routes.c"], include_dirs=[rdmeta.get_include()])
setup(name="routes", version="1", ext_modules=[routes])

"""An extension needs the headers only: it links no library of rdmeta."""

from Cython.Build import cythonize
from setuptools import Extension, setup

import rdmeta

router = Extension("router", ["router.pyx"], include_dirs=[rdmeta.get_include()])
setup(name="router", version="1", ext_modules=cythonize([router], language_level=3))

"""Builds the module gannet._gannet by CMake, for `pip install .`; pyproject.toml has the rest."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import setuptools
from setuptools.command.build_ext import build_ext

ROOT = pathlib.Path(__file__).resolve().parent
VERSION = re.search(r"project\(gannet VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text()).group(1)


class CMakeBuild(build_ext):
    """Configures and builds one target of the project. GANNET_BUILD names a build directory to use again."""

    def build_extension(self, ext: setuptools.Extension) -> None:
        build = pathlib.Path(os.environ.get("GANNET_BUILD", pathlib.Path(self.build_temp).resolve() / "cmake"))
        if not (build / "build.ninja").exists():
            subprocess.run(
                ["cmake", "-S", str(ROOT), "-B", str(build), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                 "-DGANNET_BUILD_TESTS=OFF", "-DGANNET_BUILD_BENCHMARKS=OFF", f"-DPython3_EXECUTABLE={sys.executable}"], check=True)
        subprocess.run(["cmake", "--build", str(build), "--target", "gannet_python"], check=True)
        module = next((build / "python" / "package" / "gannet").glob("_gannet*.so"))
        target = pathlib.Path(self.get_ext_fullpath(ext.name))
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(module, target)


setuptools.setup(
    version=VERSION,
    ext_modules=[setuptools.Extension("gannet._gannet", sources=[])],
    cmdclass={"build_ext": CMakeBuild},
)

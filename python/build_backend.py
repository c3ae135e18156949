"""Makes the wheel of the Python package. pip calls it (pyproject.toml, PEP 517), and `./dev wheel`. It needs nothing
but Python itself, so `pip install .` works without a network.

    python3 build_backend.py DIRECTORY      # the wheel in this directory

The module is taken from a build of the project: that of GANNET_BUILD, a build directory; without it from build/release
if `./dev build` made it for this version of Python; else from build/python-VERSION, which is made.
"""

import base64
import hashlib
import os
import pathlib
import re
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from typing import Any, Dict, Optional

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODULE_SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")


def _version() -> str:
    found = re.search(r"project\(gannet VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())
    assert found is not None
    return found.group(1)


def _suffix_of(build: pathlib.Path) -> Optional[str]:
    """The suffix of modules of the Python that the build directory is for; None: it is for none."""
    cache = build / "CMakeCache.txt"
    found = re.search(r"^PYTHON_MODULE_EXTENSION:\w+=(.*)$", cache.read_text(), re.M) if cache.exists() else None
    return found.group(1) if found else None


def _build_directory() -> pathlib.Path:
    if "GANNET_BUILD" in os.environ:
        build = pathlib.Path(os.environ["GANNET_BUILD"]).resolve()
        if _suffix_of(build) != MODULE_SUFFIX:
            raise SystemExit(f"GANNET_BUILD: {build} is no build for {sys.executable}, whose modules end with "
                             f"{MODULE_SUFFIX}, but for {_suffix_of(build) or 'no Python'}; leave GANNET_BUILD unset, "
                             f"or configure that directory with -DPython3_EXECUTABLE={sys.executable}")
        return build
    release = ROOT / "build" / "release"
    if _suffix_of(release) == MODULE_SUFFIX:
        return release
    build = ROOT / "build" / f"python-{sys.version_info.major}.{sys.version_info.minor}"
    if not (build / "build.ninja").exists():
        subprocess.run(["cmake", "-S", str(ROOT), "-B", str(build), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                        "-DGANNET_BUILD_TESTS=OFF", "-DGANNET_BUILD_BENCHMARKS=OFF", "-DGANNET_BUILD_EXAMPLES=OFF",
                        f"-DPython3_EXECUTABLE={sys.executable}"], check=True)
    if _suffix_of(build) != MODULE_SUFFIX:
        raise SystemExit(f"CMake does not find pybind11 and the headers of {sys.executable}: `./dev setup` installs "
                         "those of Debian's Python")
    return build


def _module(build: pathlib.Path) -> bytes:
    """The module, without what only a debugger reads."""
    subprocess.run(["cmake", "--build", str(build), "--target", "gannet_python"], check=True, stdout=sys.stderr)
    built = build / "python" / "package" / "gannet" / f"_gannet{MODULE_SUFFIX}"
    with tempfile.NamedTemporaryFile() as stripped:
        subprocess.run(["strip", "--strip-unneeded", "-o", stripped.name, str(built)], check=True)
        return pathlib.Path(stripped.name).read_bytes()


def build_wheel(wheel_directory: str, config_settings: Optional[Dict[str, Any]] = None,
                metadata_directory: Optional[str] = None) -> str:
    """Writes the wheel into the directory, and returns its name."""
    version = _version()
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    tag = f"{python}-{python}-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
    info = f"gannet-{version}.dist-info"
    files = {f"gannet/{path.name}": path.read_bytes() for path in sorted((ROOT / "python" / "gannet").iterdir())
             if path.suffix in (".py", ".pyi", ".typed")}
    files[f"gannet/_gannet{MODULE_SUFFIX}"] = _module(_build_directory())
    files[f"{info}/METADATA"] = (
        f"Metadata-Version: 2.1\nName: gannet\nVersion: {version}\n"
        "Summary: A transactional storage engine in this process\nLicense: Apache-2.0\nRequires-Python: >=3.10\n"
        "Provides-Extra: numpy\nRequires-Dist: numpy; extra == 'numpy'\n").encode()
    files[f"{info}/LICENSE"] = (ROOT / "LICENSE").read_bytes()
    files[f"{info}/WHEEL"] = (
        f"Wheel-Version: 1.0\nGenerator: gannet {version}\nRoot-Is-Purelib: false\nTag: {tag}\n").encode()
    record = ""
    for file, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        record += f"{file},sha256={digest},{len(content)}\n"
    files[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode()
    name = f"gannet-{version}-{tag}.whl"
    with zipfile.ZipFile(pathlib.Path(wheel_directory) / name, "w", zipfile.ZIP_DEFLATED) as wheel:
        for file, content in files.items():
            wheel.writestr(file, content)
    return name


if __name__ == "__main__":
    os.makedirs(sys.argv[1], exist_ok=True)
    print(os.path.join(sys.argv[1], build_wheel(sys.argv[1])))

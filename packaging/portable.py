"""Packs the binary with all that it is linked with, for Linux on x86-64 whatever the distribution.

    portable.py ATTUNE VERSION FOLDER

Into FOLDER come an archive, attune-VERSION-linux-x86_64.tar.gz, and a wheel, which also has the Python package.
Both hold `bin/attune`, a script, and beside it `lib/attune/`: the binary, stripped, the shared libraries that it
needs, the C library and its loader among them, and the licences of the Debian packages that these are from.
"""

import base64
import gzip
import hashlib
import io
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
LOADER = "attune-loader"  # as attune.sh and executor/processes/own_program.cc have it
# Nothing of the machine's C library is used, so that any will do, and pip knows of none older. By two names, of
# which pip before 20.3 knows the first.
PLATFORMS = ["manylinux1_x86_64", "manylinux_2_5_x86_64"]
# Merged into the C library with 2.34; what was built for one before it, such as NVIDIA's libraries, asks for them.
MERGED = ["libpthread.so.0", "libdl.so.2", "librt.so.1"]
DATE = (1980, 1, 1, 0, 0, 0)  # of every file in a wheel: the same files are the same wheel


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def libraries(binary):
    """(loader, {name: file} of the shared libraries) that the binary runs with here."""
    said = output("ldd", binary)
    if missing := re.findall(r"(\S+) => not found", said):
        sys.exit(f"portable.py: {binary} lacks {', '.join(missing)}")
    found = dict(re.findall(r"^\s*(\S+) => (/\S+)", said, re.M))
    found.update({name: str(pathlib.Path(found["libc.so.6"]).with_name(name)) for name in MERGED})
    return re.search(r"^\s*(/\S*/ld-\S+)", said, re.M).group(1), found


def licences(files):
    """{name: text} of the packages of Debian's that the files are from."""
    packages = set()
    for file in files:
        path = pathlib.Path(file).resolve()
        # dpkg may know it under the name that it had before /lib became /usr/lib.
        for name in path, pathlib.Path("/", *path.parts[2:]):
            found = subprocess.run(["dpkg-query", "--search", name], capture_output=True, text=True).stdout
            packages.update(re.findall(r"^([^:\s]+)", found, re.M))
    return {f"{package}.txt": pathlib.Path("/usr/share/doc", package, "copyright").read_bytes()
            for package in sorted(packages)}


def tree(binary):
    """{path below bin/ or lib/: (content, whether it is a program)}."""
    loader, found = libraries(binary)
    with tempfile.TemporaryDirectory() as folder:
        stripped = shutil.copy(binary, folder)
        output("strip", stripped)
        files = {"bin/attune": ((ROOT / "packaging/attune.sh").read_bytes(), True),
                 "lib/attune/attune": (pathlib.Path(stripped).read_bytes(), True),
                 f"lib/attune/{LOADER}": (pathlib.Path(loader).read_bytes(), True)}
    for name, file in sorted(found.items()):
        files[f"lib/attune/{name}"] = pathlib.Path(file).read_bytes(), False
    for name, text in licences([loader, *found.values()]).items():
        files[f"lib/attune/licences/{name}"] = text, False
    files["lib/attune/licences/attune.txt"] = (ROOT / "LICENSE").read_bytes(), False
    return files


def archive(files, name, file):
    with gzip.GzipFile(file, "wb", mtime=0) as packed, tarfile.open(fileobj=packed, mode="w") as tar:
        for path, (content, is_program) in files.items():
            member = tarfile.TarInfo(f"{name}/{path}")
            member.size, member.mode = len(content), 0o755 if is_program else 0o644
            tar.addfile(member, io.BytesIO(content))


def wheel(files, version, folder):
    """As PEP 427 has it."""
    data, info = f"attune-{version}.data", f"attune-{version}.dist-info"
    places = {"bin/": f"{data}/scripts/", "lib/": f"{data}/data/lib/"}
    packed = {places[path[:4]] + path[4:]: content for path, content in files.items()}
    for source in sorted((ROOT / "clients/python/attune").glob("*.py")):
        packed[f"attune/{source.name}"] = source.read_bytes(), False
    about = (f"Metadata-Version: 2.1\nName: attune\nVersion: {version}\n"
             "Summary: Tunes the hyperparameters of distributed training\nLicense: Apache-2.0\n"
             "Requires-Python: >=3.9\n")
    packed[f"{info}/METADATA"] = about.encode(), False
    what = "Wheel-Version: 1.0\nGenerator: attune\nRoot-Is-Purelib: false\n"
    what += "".join(f"Tag: py3-none-{platform}\n" for platform in PLATFORMS)
    packed[f"{info}/WHEEL"] = what.encode(), False
    record = ""
    for path, (content, _) in packed.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        record += f"{path},sha256={digest},{len(content)}\n"
    packed[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode(), False
    with zipfile.ZipFile(folder / f"attune-{version}-py3-none-{'.'.join(PLATFORMS)}.whl", "w", zipfile.ZIP_DEFLATED) as out:
        for path, (content, is_program) in packed.items():
            member = zipfile.ZipInfo(path, DATE)
            member.external_attr = (0o100755 if is_program else 0o100644) << 16
            out.writestr(member, content, zipfile.ZIP_DEFLATED)


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    binary, version, folder = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
    folder.mkdir(parents=True, exist_ok=True)
    files = tree(binary)
    name = f"attune-{version}-linux-x86_64"
    archive(files, name, folder / f"{name}.tar.gz")
    wheel(files, version, folder)


if __name__ == "__main__":
    main()

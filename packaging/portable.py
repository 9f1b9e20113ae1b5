"""Packs the installed binary with all libraries that it loads, for any Linux distribution.

    portable.py PREFIX FOLDER

PREFIX is the output of `cmake --install BUILD --component attune --strip`. Writes to FOLDER:

    attune-VERSION-linux-MACHINE.tar.gz     bin/attune, lib/attune/, share/
    attune_hpo-VERSION-…MACHINE.whl         the same files and the Python package
    attune_hpo-VERSION-py3-none-any.whl     only the Python package, for other systems

`bin/attune` is a script. `lib/attune/` has the binary, its shared libraries, the C library, the loader, and the
licences of the Debian packages that they come from. `share/` is copied from PREFIX.
"""

import gzip
import io
import pathlib
import re
import subprocess
import sys
import tarfile

import elf
import wheel

SCRIPT = pathlib.Path(__file__).resolve().parent / "attune.sh"
LOADER = "attune-loader"  # the name in attune.sh and system/own_program.cc
# The wheels do not use the machine's C library, so they require the oldest version that pip knows. pip before
# 20.3 knows only the first name of each.
PLATFORMS = {"x86_64": ["manylinux1_x86_64", "manylinux_2_5_x86_64"],
             "aarch64": ["manylinux2014_aarch64", "manylinux_2_17_aarch64"]}
OPENED = ["libcurl.so.4"]  # the binary opens it at its first download
# Part of the C library since 2.34. Libraries that were built for older versions, such as NVIDIA's, still load them.
MERGED = ["libpthread.so.0", "libdl.so.2", "librt.so.1"]


def licences(files):
    """{name: licence text} of the Debian packages that contain the files."""
    paths = [pathlib.Path(file).resolve() for file in files]
    # dpkg may know a file under the name that it had before /lib became /usr/lib.
    names = [name for path in paths for name in (path, pathlib.Path("/", *path.parts[2:]))]
    found = subprocess.run(["dpkg-query", "--search", *names], capture_output=True, text=True).stdout
    return {f"{package}.txt": pathlib.Path("/usr/share/doc", package, "copyright").read_bytes()
            for package in sorted(set(re.findall(r"^([^:\s]+):", found, re.M)))}


def tree(prefix):
    """{path below bin/, lib/ or share/: (content, whether it is a program)} of the archive."""
    binary = prefix / "bin/attune"
    loader = pathlib.Path(elf.Elf(binary).interpreter)
    found = elf.libraries(binary, elf.library_folders(), OPENED)
    found.update({name: found["libc.so.6"].with_name(name) for name in MERGED})
    files = {"bin/attune": (SCRIPT.read_bytes(), True),
             "lib/attune/attune": (binary.read_bytes(), True),
             f"lib/attune/{LOADER}": (loader.read_bytes(), True)}
    for name, file in sorted(found.items()):
        files[f"lib/attune/{name}"] = file.read_bytes(), False
    for name, text in licences([loader, *found.values()]).items():
        files[f"lib/attune/licences/{name}"] = text, False
    for file in sorted((prefix / "share").rglob("*")):
        if file.is_file():
            files[file.relative_to(prefix).as_posix()] = file.read_bytes(), False
    return files


def archive(files, name, folder):
    with (gzip.GzipFile(folder / f"{name}.tar.gz", "wb", compresslevel=6, mtime=0) as packed,
          tarfile.open(fileobj=packed, mode="w") as tar):
        for path, (content, is_program) in files.items():
            member = tarfile.TarInfo(f"{name}/{path}")
            member.size, member.mode = len(content), 0o755 if is_program else 0o644
            tar.addfile(member, io.BytesIO(content))


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    prefix, folder = map(pathlib.Path, sys.argv[1:])
    folder.mkdir(parents=True, exist_ok=True)
    try:
        machine = elf.Elf(prefix / "bin/attune").machine
        files = tree(prefix)
    except (elf.Error, OSError) as error:
        sys.exit(f"portable.py: {error}")
    archive(files, f"attune-{wheel.project()['version']}-linux-{machine}", folder)
    wheel.write(folder, PLATFORMS[machine], files)
    wheel.write(folder, [], {})


if __name__ == "__main__":
    main()

"""Finds the shared libraries of a program by its ELF headers, also for another architecture."""

import pathlib
import struct

MACHINES = {62: "x86_64", 183: "aarch64"}  # e_machine → what `uname -m` prints
_PT_LOAD, _PT_DYNAMIC, _PT_INTERP = 1, 2, 3
_DT_NULL, _DT_NEEDED, _DT_STRTAB = 0, 1, 5


class Error(Exception):
    pass


class Elf:
    """A 64-bit program or shared library: `machine`, `interpreter` (a path or None), `needed` (names)."""

    def __init__(self, file):
        data = pathlib.Path(file).read_bytes()
        if data[:6] != b"\x7fELF\x02\x01":  # magic, 64 bits, little-endian
            raise Error(f"{file}: not a 64-bit little-endian ELF file")
        try:
            self._read(data, file)
        except (struct.error, ValueError) as error:
            raise Error(f"{file}: damaged ELF file: {error}") from None

    def _read(self, data, file):
        machine, = struct.unpack_from("<H", data, 18)
        if machine not in MACHINES:
            raise Error(f"{file}: built for machine {machine}; supported are {', '.join(MACHINES.values())}")
        self.machine = MACHINES[machine]
        table, = struct.unpack_from("<Q", data, 32)
        entry_size, count = struct.unpack_from("<HH", data, 54)
        self.interpreter, dynamic, loads = None, None, []
        for entry in range(table, table + entry_size * count, entry_size):
            kind, _, offset, address, _, size = struct.unpack_from("<IIQQQQ", data, entry)
            if kind == _PT_INTERP:
                self.interpreter = _text(data, offset)
            elif kind == _PT_DYNAMIC:
                dynamic = offset, size
            elif kind == _PT_LOAD:
                loads.append((address, size, offset))
        self.needed = _needed(data, *dynamic, loads) if dynamic else []


def _needed(data, offset, size, loads):
    names, strings = [], 0
    for entry in range(offset, offset + size, 16):
        tag, value = struct.unpack_from("<QQ", data, entry)
        if tag == _DT_NULL:
            break
        if tag == _DT_NEEDED:
            names.append(value)
        elif tag == _DT_STRTAB:
            strings = next((value - address + start for address, length, start in loads
                            if address <= value < address + length), None)
    if strings is None:
        raise ValueError("its string table is in no segment")
    return [_text(data, strings + name) for name in names]


def _text(data, offset):
    return data[offset:data.index(b"\0", offset)].decode()


def library_folders(conf="/etc/ld.so.conf"):
    """The folders that the loader searches: those of ld.so.conf with its includes, then the standard folders."""
    return [*_configured(pathlib.Path(conf)), *map(pathlib.Path, ("/lib64", "/usr/lib64", "/lib", "/usr/lib"))]


def _configured(conf):
    folders = []
    for line in conf.read_text().splitlines() if conf.exists() else ():
        words = line.split("#")[0].split()
        if words[:1] == ["include"]:
            pattern = pathlib.Path(words[1])
            base = pattern.parent if pattern.is_absolute() else conf.parent / pattern.parent
            for included in sorted(base.glob(pattern.name)):
                folders += _configured(included)
        elif words:
            folders.append(pathlib.Path(words[0]))
    return folders


def libraries(program, folders, opened=()):
    """{name: file} of all shared libraries that the program loads directly or indirectly, without its loader.

    `opened` has the names of libraries that it opens while it runs (dlopen).
    """
    first = Elf(program)
    loader = pathlib.Path(first.interpreter or "").name
    found, wanted = {}, [*first.needed, *opened]
    while wanted:
        name = wanted.pop(0)
        if name in found or name == loader:
            continue
        found[name] = _find(name, first.machine, folders)
        if found[name]:
            wanted += Elf(found[name]).needed
    if missing := sorted(name for name, file in found.items() if file is None):
        raise Error(f"{program}: missing libraries {', '.join(missing)} for {first.machine}; install the packages that have them")
    return found


def _find(name, machine, folders):
    for folder in folders:
        file = folder / name
        try:
            if file.is_file() and Elf(file).machine == machine:
                return file
        except Error:
            continue  # for another machine, such as the 32-bit libraries of the same name
    return None

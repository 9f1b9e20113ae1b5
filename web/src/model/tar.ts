const blockBytes = 512;
const nameBytes = 100;
const prefixBytes = 155;

export interface TarFile {
  name: string;
  parts: readonly Uint8Array<ArrayBuffer>[];
}

/** The parts of a tar archive (POSIX ustar) with these files. Throws if a name is too long for it. */
export function tarParts(files: readonly TarFile[]): Uint8Array<ArrayBuffer>[] {
  const archive: Uint8Array<ArrayBuffer>[] = [];
  for (const { name, parts } of files) {
    const size = parts.reduce((sum, part) => sum + part.length, 0);
    archive.push(headerOf(name, size), ...parts);
    const rest = size % blockBytes;
    if (rest > 0) archive.push(new Uint8Array(blockBytes - rest));
  }
  // Two empty blocks end an archive.
  archive.push(new Uint8Array(2 * blockBytes));
  return archive;
}

function headerOf(path: string, size: number): Uint8Array<ArrayBuffer> {
  const header = new Uint8Array(blockBytes);
  const encoder = new TextEncoder();
  const put = (text: string, at: number): void => header.set(encoder.encode(text), at);
  const octal = (value: number, digits: number): string =>
    `${value.toString(8).padStart(digits, '0')}\0`;
  const { prefix, name } = splitName(path);
  put(name, 0);
  put(octal(0o644, 7), nameBytes);
  put(octal(0, 7), 108);
  put(octal(0, 7), 116);
  put(octal(size, 11), 124);
  put(octal(0, 11), 136);
  put(' '.repeat(8), 148);
  put('0', 156);
  put('ustar\u000000', 257);
  put(prefix, 345);
  // The sum is that of a header whose own field has spaces.
  const sum = header.reduce((total, byte) => total + byte, 0);
  put(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return header;
}

function splitName(path: string): { prefix: string; name: string } {
  const length = (text: string): number => new TextEncoder().encode(text).length;
  if (length(path) <= nameBytes) return { prefix: '', name: path };
  for (let at = path.indexOf('/'); at >= 0; at = path.indexOf('/', at + 1)) {
    const [prefix, name] = [path.slice(0, at), path.slice(at + 1)];
    if (name && length(prefix) <= prefixBytes && length(name) <= nameBytes) return { prefix, name };
  }
  throw new Error(`the name ${path} is too long for an archive`);
}

import { api, type CheckpointName } from '../api/client';
import { tarParts, type TarFile } from '../model/tar';

/** A browser holds the whole archive in memory; larger checkpoints need the command line. */
export const mostDownloadedBytes = 512 * 1024 * 1024;

interface Manifest {
  files: Record<string, { bytes: number; sha256: string }>;
}

type Bytes = Uint8Array<ArrayBuffer>;

async function readFile(
  name: CheckpointName,
  file: string,
  signal: AbortSignal,
  onBytes: (count: number) => void,
): Promise<Bytes[]> {
  const parts: Bytes[] = [];
  let read = 0;
  for (;;) {
    const { bytes, size } = await api.checkpointFile(name, file, read, signal);
    parts.push(bytes);
    read += bytes.length;
    onBytes(bytes.length);
    if (read >= size) return parts;
    if (bytes.length === 0) throw new Error(`${file} ends before its size`);
  }
}

/** The files of a checkpoint, by its manifest. */
export async function readManifest(name: CheckpointName, signal: AbortSignal): Promise<Manifest> {
  const parts = await readFile(name, 'manifest.json', signal, () => undefined);
  return JSON.parse(await new Blob(parts).text()) as Manifest;
}

/**
 * Reads a checkpoint from the host that has it, as a tar archive with one folder. Checks the files by
 * their SHA-256 where the browser can (https and localhost). `onBytes` gets the bytes read so far.
 */
export async function downloadCheckpoint(
  name: CheckpointName,
  folder: string,
  signal: AbortSignal,
  onBytes: (count: number) => void,
): Promise<Blob> {
  let read = 0;
  const count = (bytes: number): void => onBytes((read += bytes));
  const manifest = await readManifest(name, signal);
  const files: TarFile[] = [
    {
      name: `${folder}/manifest.json`,
      parts: await readFile(name, 'manifest.json', signal, count),
    },
  ];
  for (const [file, { sha256 }] of Object.entries(manifest.files)) {
    const parts = await readFile(name, file, signal, count);
    if (!(await matches(parts, sha256)))
      throw new Error(`${file} does not match its SHA-256; download it again`);
    files.push({ name: `${folder}/${file}`, parts });
  }
  return new Blob(tarParts(files), { type: 'application/x-tar' });
}

async function matches(parts: readonly Bytes[], sha256: string): Promise<boolean> {
  // Without https the browser offers no digests.
  if (!globalThis.crypto?.subtle) return true;
  const whole = await new Blob([...parts]).arrayBuffer();
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', whole));
  return [...digest].map((byte) => byte.toString(16).padStart(2, '0')).join('') === sha256;
}

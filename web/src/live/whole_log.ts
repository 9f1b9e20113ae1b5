import { api } from '../api/client';
import type { LogMatch } from '../model/logs/log_search';
import type { BoundedSearch } from './bounded_search';
import type { LogPlace } from './log_live';

const pieceBytes = 1 << 20;
/** The browser holds a downloaded log in memory. */
const mostDownloaded = 512 << 20;

/** Reads the log of a rank from its beginning; `take` returns false to stop. */
async function readWhole(
  at: LogPlace,
  signal: AbortSignal,
  take: (
    bytes: Uint8Array<ArrayBuffer>,
    offset: number,
    size: number,
  ) => boolean | Promise<boolean>,
): Promise<void> {
  const { sweep, trial, attempt, rank } = at;
  let offset = 0;
  for (;;) {
    const of = { attempt, rank, offset, limit: pieceBytes };
    const piece = await api.log(sweep, trial, of, signal);
    if (piece.bytes.length === 0) return;
    if (!(await take(piece.bytes, piece.offset, piece.size))) return;
    const { gap } = piece;
    const next = piece.offset + piece.bytes.length;
    offset = gap && next >= gap.begin && next < gap.end ? gap.end : next;
    if (offset >= piece.size) return;
  }
}

/** Searches the whole log and returns the lines found; `onProgress` gets the share that was read. */
export async function searchLog(
  at: LogPlace,
  search: BoundedSearch,
  signal: AbortSignal,
  onProgress: (share: number) => void,
): Promise<readonly LogMatch[]> {
  try {
    await search.start();
    await readWhole(at, signal, async (bytes, offset, size) => {
      const isFull = await search.add(bytes, offset);
      onProgress((offset + bytes.length) / size);
      return !isFull;
    });
    return await search.finish();
  } finally {
    search.close();
  }
}

/** The log as a file. A note in it says where bytes are missing. `missing`: those after its end. */
export async function downloadLog(
  at: LogPlace,
  signal: AbortSignal,
): Promise<{ blob: Blob; missing: number }> {
  const parts: (Uint8Array<ArrayBuffer> | string)[] = [];
  let end = 0;
  let missing = 0;
  await readWhole(at, signal, (bytes, offset, size) => {
    if (offset > end) parts.push(`\n[${offset - end} bytes are missing here]\n`);
    parts.push(bytes);
    end = offset + bytes.length;
    if (end < mostDownloaded) return true;
    missing = size - end;
    return false;
  });
  return { blob: new Blob(parts, { type: 'text/plain' }), missing };
}

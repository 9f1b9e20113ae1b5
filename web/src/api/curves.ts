/** Learning curves in binary form, as docs/reference/rest-api.md describes it. */

export const curvesType = 'application/vnd.attune.curves';

/** A page of curves. Its arrays are views of the answer's buffer. */
export interface CurvePage {
  /** The last event that the page includes. */
  seq: number;
  /** The first trial of the next page; undefined on the last page. */
  next: number | undefined;
  /** The number of trials. */
  count: number;
  /** Four numbers for each trial: its number, its list of steps, its first value, flags. */
  trials: Uint32Array;
  /** Where each list of steps begins; the last element is the end of the last list. */
  listStarts: Uint32Array;
  steps: Float64Array;
  values: Float32Array;
  segments: readonly CurveSegment[];
  clones: readonly CurveClone[];
}

/** A part of a curve that one attempt reported, from its first step on. */
export interface CurveSegment {
  trial: number;
  attempt: number;
  step: number;
}

/** The trial continues after the step with the checkpoint of the donor. */
export interface CurveClone {
  trial: number;
  donor: number;
  step: number;
}

const magic = 'ATCURVE1';
const headerBytes = 64;

/** Thrown if an answer is not a page of curves. */
export class CurveFormatError extends Error {}

export function decodeCurves(buffer: ArrayBuffer): CurvePage {
  if (buffer.byteLength < headerBytes) throw new CurveFormatError('curves: the header is cut off');
  const head = new DataView(buffer);
  const name = String.fromCharCode(...new Uint8Array(buffer, 0, magic.length));
  if (name !== magic) throw new CurveFormatError(`curves: the magic is '${name}'`);
  const field = (index: number): number => head.getUint32(16 + 4 * index, true);
  const [count, lists, points, stepCount, clones, segments, next] = [0, 1, 2, 3, 4, 5, 6].map(
    field,
  ) as [number, number, number, number, number, number, number];

  let at = headerBytes;
  const take = (bytes: number): number => {
    const begin = at;
    at += Math.ceil(bytes / 8) * 8;
    if (at > buffer.byteLength) throw new CurveFormatError('curves: the data is cut off');
    return begin;
  };
  const listStarts = new Uint32Array(buffer, take(4 * (lists + 1)), lists + 1);
  const steps = new Float64Array(buffer, take(8 * stepCount), stepCount);
  const trials = new Uint32Array(buffer, take(16 * count), 4 * count);
  const values = new Float32Array(buffer, take(4 * points), points);
  const segmentsAt = take(16 * segments);
  const clonesAt = take(16 * clones);
  const marks = (begin: number, length: number): [number, number, number][] =>
    Array.from({ length }, (_, i) => [
      head.getUint32(begin + 16 * i, true),
      head.getUint32(begin + 16 * i + 4, true),
      head.getFloat64(begin + 16 * i + 8, true),
    ]);
  return {
    seq: Number(head.getBigUint64(8, true)),
    next: next === 0 ? undefined : next - 1,
    ...{ count, trials, listStarts, steps, values },
    segments: marks(segmentsAt, segments).map(([trial, attempt, step]) => ({
      ...{ trial, attempt, step },
    })),
    clones: marks(clonesAt, clones).map(([trial, donor, step]) => ({ trial, donor, step })),
  };
}

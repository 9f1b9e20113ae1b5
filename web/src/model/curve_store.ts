import type { CurvePage } from '../api/curves';
import { frameOfParts, type Frame } from './curve_frame';
import { Curve, type Clone } from './curve';

/** The steps and values of a curve, as parts of longer arrays. */
export interface Trace {
  number: number;
  steps: ArrayLike<number>;
  firstStep: number;
  values: ArrayLike<number>;
  firstValue: number;
  length: number;
  /** The line is interrupted before these points, because of a clone or an earlier attempt. */
  breaks: readonly number[];
}

interface Packed {
  page: CurvePage;
  /** The place of the trial in the page. */
  at: number;
  /** The most points that a curve of the page has. */
  points: number;
}

interface KnownFrame {
  revision: number;
  /** The number of points, and the time, when it was computed. */
  points: number;
  at: number;
  frame: Frame | undefined;
}

// While pages of very many curves arrive, each frame lasts for a while.
const manyPoints = 100_000;
const frameMs = 500;

function isRecent(known: KnownFrame | undefined, points: number): known is KnownFrame {
  if (!known || points < manyPoints || points > 1.3 * known.points) return false;
  return Date.now() - known.at < frameMs;
}

const noClones: readonly Clone[] = [];
const noBreaks: readonly number[] = [];

/**
 * The curves of one metric. They stay packed as the server sent them. A curve becomes an object if it
 * is drawn as a line, changed by an event, or has clones.
 */
export class CurveStore {
  /** Grows with every change. */
  revision = 0;
  /** Grows when the clones of a trial change. */
  cloneRevision = 0;
  /** The number of points of all curves. */
  points = 0;
  /** The first and the last step of all curves. */
  firstStep = Infinity;
  lastStep = 0;
  private readonly packed = new Map<number, Packed>();
  private readonly made = new Map<number, Curve>();
  private readonly clones = new Map<number, readonly Clone[]>();
  private readonly segments = new WeakMap<
    CurvePage,
    Map<number, CurvePage['segments'][number][]>
  >();
  private readonly frames = new Map<boolean, KnownFrame>();
  private frameRevision = 0;

  /** The number of trials with at least one point. */
  get size(): number {
    return this.packed.size + this.added;
  }
  private added = 0;

  /** Takes the curves of a page. A curve that is known with more points stays. Returns the trials taken. */
  add(page: CurvePage, points: number): Set<number> {
    const taken = new Set<number>();
    const clones = new Map<number, Clone[]>();
    for (const { trial, donor, step } of page.clones) {
      const known = clones.get(trial);
      if (known) known.push({ donor, step });
      else clones.set(trial, [{ donor, step }]);
    }
    for (let at = 0; at < page.count; at += 1) {
      const number = page.trials[4 * at] as number;
      const known = this.packed.get(number);
      if (known && known.points > points) continue;
      taken.add(number);
      this.forget(number);
      const first = page.listStarts[page.trials[4 * at + 1] as number] as number;
      const end = page.listStarts[(page.trials[4 * at + 1] as number) + 1] as number;
      if (end > first) {
        this.packed.set(number, { page, at, points });
        this.points += end - first;
        this.firstStep = Math.min(this.firstStep, page.steps[first] as number);
        this.lastStep = Math.max(this.lastStep, page.steps[end - 1] as number);
      }
      const cloned = clones.get(number);
      if (cloned) this.change(number, (curve) => cloned.forEach((clone) => curve.clone(clone)));
    }
    this.revision += 1;
    this.frameRevision += 1;
    return taken;
  }

  has(number: number): boolean {
    return this.lengthOf(number) > 0;
  }

  lengthOf(number: number): number {
    const made = this.made.get(number);
    if (made) return made.length;
    const packed = this.packed.get(number);
    return packed ? rangeOf(packed)[1] : 0;
  }

  get(number: number): Curve | undefined {
    const made = this.made.get(number);
    if (made) return made;
    const packed = this.packed.get(number);
    if (!packed) return undefined;
    const { page, at } = packed;
    const [first, length] = rangeOf(packed);
    const value = page.trials[4 * at + 2] as number;
    const curve = Curve.fromParts(
      page.steps.subarray(first, first + length),
      page.values.subarray(value, value + length),
      this.segmentsOf(page, number),
      noClones,
    );
    this.made.set(number, curve);
    return curve;
  }

  clonesOf(number: number): readonly Clone[] {
    return this.clones.get(number) ?? noClones;
  }

  get hasClones(): boolean {
    return this.clones.size > 0;
  }

  /** Whether the curve may have more points than the server sent. */
  isThinned(number: number): boolean {
    const packed = this.packed.get(number);
    // Thinning leaves at least about half of the points that were asked for.
    return packed !== undefined && rangeOf(packed)[1] >= packed.points / 2 - 2;
  }

  /** Changes a curve, which may be new. */
  change(number: number, change: (curve: Curve) => void): void {
    let curve = this.get(number);
    if (!curve) this.made.set(number, (curve = new Curve()));
    const before = curve.length;
    change(curve);
    this.points += curve.length - before;
    if (!this.packed.has(number) && before === 0 && curve.length > 0) this.added += 1;
    if (curve.length > 0) {
      this.firstStep = Math.min(this.firstStep, curve.steps[0] as number);
      this.lastStep = Math.max(this.lastStep, curve.steps.at(-1) as number);
    }
    if (curve.clones.length !== this.clonesOf(number).length || curve.clones.length > 0) {
      this.clones.set(number, [...curve.clones]);
      this.cloneRevision += 1;
    }
    this.checkFrames(curve.values.at(-1));
    this.revision += 1;
  }

  /** The trials that have points. */
  *numbers(): IterableIterator<number> {
    yield* this.packed.keys();
    for (const [number, curve] of this.made)
      if (!this.packed.has(number) && curve.length > 0) yield number;
  }

  /** The points of a trial, without a copy. */
  trace(number: number): Trace | undefined {
    const made = this.made.get(number);
    if (made) {
      const { steps, values, length } = made;
      const breaks = made.clones.length > 0 || made.seams.length > 0 ? made.breaks : noBreaks;
      return { number, steps, firstStep: 0, values, firstValue: 0, length, breaks };
    }
    const packed = this.packed.get(number);
    if (!packed) return undefined;
    const { page, at } = packed;
    const [firstStep, length] = rangeOf(packed);
    const firstValue = page.trials[4 * at + 2] as number;
    const { steps, values } = page;
    const parts = this.segmentsOf(page, number);
    const breaks = parts.length > 1 ? (this.get(number)?.breaks ?? noBreaks) : noBreaks;
    return { number, steps, firstStep, values, firstValue, length, breaks };
  }

  /** The range of values of all curves; see `frameOf`. */
  frame(logarithmic: boolean): Frame | undefined {
    let known = this.frames.get(logarithmic);
    if (known?.revision !== this.frameRevision && !isRecent(known, this.points)) {
      const traces = [...this.numbers()].flatMap((number) => this.trace(number) ?? []);
      const frame = frameOfParts(traces, logarithmic);
      known = { revision: this.frameRevision, points: this.points, at: Date.now(), frame };
      this.frames.set(logarithmic, known);
    }
    return known?.frame;
  }

  // A point within the frames changes no frame.
  private checkFrames(value: number | undefined): void {
    for (const { frame } of this.frames.values())
      if (!frame || (value !== undefined && (value < frame.min || value > frame.max)))
        this.frameRevision += 1;
  }

  private forget(number: number): void {
    const length = this.lengthOf(number);
    this.points -= length;
    if (!this.packed.has(number) && length > 0) this.added -= 1;
    this.packed.delete(number);
    this.made.delete(number);
    if (this.clones.delete(number)) this.cloneRevision += 1;
  }

  private segmentsOf(page: CurvePage, number: number): readonly CurvePage['segments'][number][] {
    let index = this.segments.get(page);
    if (!index) {
      index = new Map();
      for (const segment of page.segments) {
        const known = index.get(segment.trial);
        if (known) known.push(segment);
        else index.set(segment.trial, [segment]);
      }
      this.segments.set(page, index);
    }
    return index.get(number) ?? [];
  }
}

function rangeOf({ page, at }: Packed): [first: number, length: number] {
  const list = page.trials[4 * at + 1] as number;
  const first = page.listStarts[list] as number;
  return [first, (page.listStarts[list + 1] as number) - first];
}

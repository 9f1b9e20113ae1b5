import { signal, type ReadonlySignal } from '@preact/signals';

import { api } from '../api/client';
import type { Failures } from '../api/contract';
import { explain } from './session';
import { throttle } from './throttle';

const refreshMs = 5000;

/** The failures of a sweep. Several parts of the page use the same object. */
export class SharedFailures {
  private static readonly all = new Map<string, SharedFailures>();
  private readonly read = signal<Failures | undefined>(undefined);

  private constructor(private readonly sweep: string) {}

  static of(sweep: string): SharedFailures {
    let found = SharedFailures.all.get(sweep);
    if (!found) SharedFailures.all.set(sweep, (found = new SharedFailures(sweep)));
    return found;
  }

  /** Undefined until they are read. */
  get failures(): ReadonlySignal<Failures | undefined> {
    return this.read;
  }

  /** Reads them again, at most every five seconds. */
  readonly refresh = throttle(refreshMs, async () => {
    try {
      this.read.value = await api.failures(this.sweep);
    } catch (error) {
      explain(error);
    }
  });
}

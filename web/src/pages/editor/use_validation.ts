import { useEffect, useState } from 'preact/hooks';

import { ApiError, api } from '../../api/client';
import type { Fault, ValidatedSweep } from '../../api/contract';
import { explain } from '../../live/session';

export interface Validation {
  /** Undefined while the file is wrong or is being checked for the first time. */
  valid: ValidatedSweep | undefined;
  faults: readonly Fault[];
  /** A refusal without a place in the file, or that the server does not answer. */
  trouble: string;
  busy: boolean;
}

const waitMs = 300;

/** Checks a sweep file with the server shortly after it changes. */
export function useValidation(file: string, directory: string): Validation {
  const [state, setState] = useState<Validation>({
    valid: undefined,
    faults: [],
    trouble: '',
    busy: true,
  });
  useEffect(() => {
    const abort = new AbortController();
    setState((before) => ({ ...before, busy: true }));
    const check = async (): Promise<void> => {
      try {
        const valid = await api.validate(file, directory, abort.signal);
        setState({ valid, faults: [], trouble: '', busy: false });
      } catch (error) {
        const problem = explain(error);
        if (!problem) return;
        setState({ valid: undefined, busy: false, ...described(problem) });
      }
    };
    const timer = setTimeout(() => void check(), waitMs);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [file, directory]);
  return state;
}

export function described(error: ApiError): Pick<Validation, 'faults' | 'trouble'> {
  const faults = error.problem.errors ?? [];
  return { faults, trouble: faults.length > 0 ? '' : error.message };
}

const sliceMs = 12;

/**
 * Runs work in slices, so that the browser can handle input between two of them. The work yields
 * often. Returns a function that cancels the rest.
 */
export function runInSlices(work: Iterator<unknown>, onDone: () => void): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const run = (): void => {
    const end = performance.now() + sliceMs;
    do {
      if (work.next().done) return onDone();
    } while (performance.now() < end);
    timer = setTimeout(run);
  };
  timer = setTimeout(run);
  return () => clearTimeout(timer);
}

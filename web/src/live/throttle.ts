/**
 * Runs the action at once, then at most once per interval and never twice at the same time. A call
 * during the interval runs at its end.
 */
export function throttle(intervalMs: number, action: () => Promise<void>): () => void {
  let busy = false;
  let again = false;
  const run = async (): Promise<void> => {
    busy = true;
    again = false;
    const rest = new Promise((resolve) => setTimeout(resolve, intervalMs));
    try {
      await action();
    } finally {
      await rest;
      busy = false;
      if (again) void run();
    }
  };
  return () => {
    if (busy) again = true;
    else void run();
  };
}

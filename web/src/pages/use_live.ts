import { useEffect, useState } from 'preact/hooks';

/** Makes a live object, closes it with the page, and replaces it when a member of `inputs` changes. */
export function useLive<Live extends { close(): void }>(
  make: () => Live,
  inputs: readonly unknown[],
): Live | undefined {
  const [live, setLive] = useState<Live>();
  useEffect(() => {
    const made = make();
    setLive(made);
    return () => made.close();
  }, inputs);
  return live;
}

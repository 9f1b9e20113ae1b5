const leastPx = 56;
const digitPx = 6.8; // the widest digit of the axes' font
const gapsPx = 18; // the tick and the gaps around it

/** The width of a vertical axis, so that its longest label is not cut. */
export function labelRoom(labels: readonly (string | null)[] | null): number {
  const longest = Math.max(0, ...(labels ?? []).map((text) => text?.length ?? 0));
  return Math.max(leastPx, Math.ceil(longest * digitPx) + gapsPx);
}

/**
 * How well the letters of a query match a text: 0 for no match, more for a better match. The
 * letters must occur in this order. Letters that follow each other, or that begin a word, count
 * more; a short text is better than a long one.
 */
export function fuzzyScore(query: string, text: string): number {
  const letters = query.toLowerCase().replace(/\s+/g, '');
  const lower = text.toLowerCase();
  if (letters === '') return 1;
  let score = 0;
  let at = -1;
  for (const letter of letters) {
    const next = lower.indexOf(letter, at + 1);
    if (next === -1) return 0;
    const follows = next === at + 1;
    const beginsWord = next === 0 || /[^a-z0-9]/.test(lower[next - 1] ?? '');
    score += 1 + (follows ? 2 : 0) + (beginsWord ? 2 : 0);
    at = next;
  }
  const words = lower.includes(query.trim().toLowerCase()) ? letters.length : 0;
  return score + words + 1 / (1 + lower.length);
}

/** The items that match a query, the best first; all in their order for an empty query. */
export function fuzzySort<Item>(
  query: string,
  items: readonly Item[],
  textOf: (item: Item) => string,
): Item[] {
  if (query.trim() === '') return [...items];
  return items
    .map((item, index) => ({ item, index, score: fuzzyScore(query, textOf(item)) }))
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score || a.index - b.index)
    .map(({ item }) => item);
}

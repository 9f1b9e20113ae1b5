/** Columns as text in the URL and in storage: "number,state,config.lr"; undefined: the usual ones. */
export function chooseColumns<Column extends { key: string; isOptional?: true }>(
  all: readonly Column[],
  text: string | undefined,
): Column[] {
  const usual = all.filter((column) => !column.isOptional);
  if (!text) return usual;
  const byKey = new Map(all.map((column) => [column.key, column]));
  const chosen = [...new Set(text.split(','))].map((key) => byKey.get(unescaped(key)));
  const known = chosen.filter((column) => column !== undefined);
  return known.length > 0 ? known : usual;
}

function unescaped(key: string): string {
  return key.replaceAll('%2C', ',').replaceAll('%25', '%');
}

export function formatColumns(keys: readonly string[]): string {
  return keys.map((key) => key.replaceAll('%', '%25').replaceAll(',', '%2C')).join(',');
}

/** The list with one item moved by a number of places, as far as there is room. */
export function moved<Item>(list: readonly Item[], from: number, by: number): Item[] {
  const to = Math.min(list.length - 1, Math.max(0, from + by));
  const rest = [...list];
  const [item] = rest.splice(from, 1);
  if (item !== undefined) rest.splice(to, 0, item);
  return rest;
}

/** The parts of a JSON schema that the schema of sweep files uses. */
export interface Schema {
  description?: string;
  properties?: Record<string, Schema>;
  additionalProperties?: Schema | boolean;
  oneOf?: Schema[];
  anyOf?: Schema[];
  items?: Schema;
  enum?: unknown[];
  const?: unknown;
}

/** A key or a value that fits at a place of a sweep file. */
export interface Suggestion {
  text: string;
  description: string;
}

/** Suggestions for the word before the cursor; `from` is where it begins. */
export interface Suggestions {
  from: number;
  options: Suggestion[];
}

const keyLine = /^(\s*)(?:- )?([\w.-]+):(?:\s+(.*))?$/;
const wordAtEnd = /[\w.-]*$/;

const indentOf = (line: string): number => line.length - line.trimStart().length;

/** The keys or values that fit before the cursor, in block style. Nothing fits in flow style. */
export function suggest(text: string, cursor: number, schema: Schema): Suggestions {
  const before = text.slice(0, cursor);
  const lines = before.split('\n');
  const line = lines.pop() ?? '';
  const after = text.slice(cursor).split('\n').slice(1);
  const word = wordAtEnd.exec(line)?.[0] ?? '';
  const from = cursor - word.length;
  const lead = line.slice(0, line.length - word.length);
  const asValue = /^(\s*)([\w.-]+):\s+$/.exec(lead);
  const path = pathAbove(lines, indentOf(line));
  const nodes = resolve([schema], path, text);
  if (asValue) {
    const values = nodes.flatMap((node) => valuesOf(childrenOf(node, asValue[2] ?? '')));
    return { from, options: matching(values, word) };
  }
  if (lead.trim() !== '') return { from, options: [] };
  const taken = siblings(lines, after, indentOf(line));
  const keys = nodes.flatMap((node) =>
    Object.entries(node.properties ?? {}).map(([key, of]) => ({
      text: `${key}:`,
      description: of.description ?? '',
    })),
  );
  return { from, options: matching(keys, word).filter((each) => !taken.has(each.text)) };
}

function matching(all: readonly Suggestion[], word: string): Suggestion[] {
  const unique = new Map(all.map((each) => [each.text, each]));
  return [...unique.values()].filter(({ text }) => text.startsWith(word) && text !== word);
}

/** The keys that contain a line with this indentation, from the outside. */
function pathAbove(lines: readonly string[], indent: number): string[] {
  const path: string[] = [];
  let below = indent;
  for (const line of [...lines].reverse()) {
    const found = keyLine.exec(line);
    if (!found || indentOf(line) >= below) continue;
    below = indentOf(line);
    path.unshift(found[2] ?? '');
    if (below === 0) break;
  }
  return path;
}

/** The keys of the same map, with a colon. */
function siblings(above: readonly string[], below: readonly string[], indent: number): Set<string> {
  const taken = new Set<string>();
  for (const part of [[...above].reverse(), below]) {
    for (const line of part) {
      if (line.trim() === '' || line.trimStart().startsWith('#')) continue;
      if (indentOf(line) < indent) break;
      const found = keyLine.exec(line);
      if (found && indentOf(line) === indent) taken.add(`${found[2]}:`);
    }
  }
  return taken;
}

// A choice of algorithms is decided by `name` if the file has one of them.
function resolve(nodes: Schema[], path: readonly string[], text: string): Schema[] {
  const chosen = nodes.flatMap((node) => {
    const branches = [...(node.oneOf ?? []), ...(node.anyOf ?? [])];
    const named = branches.filter(({ properties }) => {
      const name = properties?.name?.const;
      return typeof name === 'string' && new RegExp(`\\bname: *${name}\\b`).test(text);
    });
    return [node, ...(named.length > 0 ? named : branches)];
  });
  const [first, ...rest] = path;
  if (first === undefined) return chosen;
  return resolve(
    chosen.flatMap((node) => childrenOf(node, first)),
    rest,
    text,
  );
}

function childrenOf(node: Schema, key: string): Schema[] {
  const branches = [node, ...(node.oneOf ?? []), ...(node.anyOf ?? [])];
  return branches.flatMap((branch) => {
    const child =
      branch.properties?.[key] ??
      (typeof branch.additionalProperties === 'object' ? branch.additionalProperties : undefined);
    return child ? [child] : [];
  });
}

function valuesOf(nodes: readonly Schema[]): Suggestion[] {
  return nodes.flatMap((node) => {
    const values = node.enum ?? (node.const === undefined ? [] : [node.const]);
    return values.map((value) => ({ text: String(value), description: node.description ?? '' }));
  });
}

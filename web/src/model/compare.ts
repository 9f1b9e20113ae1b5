import type { AnyObject } from '../api/contract';

export const mostCompared = 5;

/** Reads a list from the URL, such as `3,17`: each item once, at most five. */
export function parseCompared(text: string | null): string[] {
  const items = (text ?? '').split(',').map((item) => item.trim());
  return [...new Set(items.filter(Boolean))].slice(0, mostCompared);
}

/** The numbers of trials in such a list. */
export function parseNumbers(text: string | null): number[] {
  return parseCompared(text)
    .filter((item) => /^\d+$/.test(item))
    .map(Number);
}

/** One name with its value in each of the compared objects; undefined: the object has no such name. */
export interface ComparedRow<Value> {
  name: string;
  values: (Value | undefined)[];
  differs: boolean;
}

/** The members of several objects side by side. Differences come first, then the given order. */
export function compareObjects<Value>(
  objects: readonly Readonly<Record<string, Value>>[],
  order: readonly string[] = [],
): ComparedRow<Value>[] {
  const names = new Set(order);
  for (const object of objects) for (const name of Object.keys(object)) names.add(name);
  const rows = [...names].flatMap((name) => {
    const values = objects.map((object) => object[name]);
    if (values.every((value) => value === undefined)) return [];
    return [{ name, values, differs: values.some((value) => value !== values[0]) }];
  });
  return [...rows.filter((row) => row.differs), ...rows.filter((row) => !row.differs)];
}

/**
 * The members of nested objects by their path, such as `scheduler.max`. A list is one value; values are
 * texts.
 */
export function flatten(object: AnyObject, before = ''): Record<string, string> {
  const flat: Record<string, string> = {};
  for (const [name, value] of Object.entries(object)) {
    const path = before ? `${before}.${name}` : name;
    if (isObject(value)) Object.assign(flat, flatten(value, path));
    else flat[path] = typeof value === 'string' ? value : JSON.stringify(value);
  }
  return flat;
}

function isObject(value: unknown): value is AnyObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

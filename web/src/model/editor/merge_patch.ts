import type { AnyObject } from '../../api/contract';

const isObject = (value: unknown): value is AnyObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The merge patch (RFC 7396) that turns one object into another. */
export function mergePatch(from: AnyObject, to: AnyObject): AnyObject {
  const patch: AnyObject = {};
  for (const key of new Set([...Object.keys(from), ...Object.keys(to)])) {
    const [before, after] = [from[key], to[key]];
    if (JSON.stringify(before) === JSON.stringify(after)) continue;
    patch[key] =
      isObject(before) && isObject(after)
        ? mergePatch(before, after)
        : after === undefined
          ? null
          : after;
  }
  return patch;
}

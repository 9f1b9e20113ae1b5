import { readFileSync } from 'node:fs';

import { describe, expect, it } from 'vitest';

import { trialStates } from '../../../web/src/model/states';

const css = readFileSync(new URL('../../../web/src/styles/tokens.css', import.meta.url), 'utf8');

function tokens(selector: string): Map<string, string> {
  const start = css.indexOf(`${selector} {`);
  expect(start, `tokens.css has ${selector}`).toBeGreaterThanOrEqual(0);
  const block = css.slice(start, css.indexOf('}', start));
  return new Map(
    [...block.matchAll(/--([\w-]+):\s*(#[0-9a-f]{6});/g)].map((m) => [
      m[1] as string,
      m[2] as string,
    ]),
  );
}

// WCAG 2.2, relative luminance and contrast ratio.
function luminance(hex: string): number {
  const channels = [1, 3, 5].map((at) => {
    const value = parseInt(hex.slice(at, at + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  });
  const [red = 0, green = 0, blue = 0] = channels;
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(a: string, b: string): number {
  const [light, dark] = [luminance(a), luminance(b)].sort((x, y) => y - x) as [number, number];
  return (light + 0.05) / (dark + 0.05);
}

const inks = ['text', 'muted', 'accent', 'danger', ...trialStates.map((state) => `state-${state}`)];
const grounds = ['bg', 'surface', 'sunken', 'raised', 'row-hover', 'accent-soft'];

describe.each([
  ['light', ':root'],
  ['dark', ":root[data-theme='dark']"],
])('the %s theme', (_, selector) => {
  const theme = tokens(selector);
  const color = (name: string): string => {
    const value = theme.get(name);
    if (!value) throw new Error(`tokens.css: ${selector} has no --${name}`);
    return value;
  };

  it.each(inks)('has legible --%s on every ground', (ink) => {
    for (const ground of grounds) {
      expect(contrast(color(ink), color(ground)), `--${ink} on --${ground}`).toBeGreaterThanOrEqual(
        4.5,
      );
    }
  });

  it('has legible buttons and notices', () => {
    expect(contrast(color('on-accent'), color('accent'))).toBeGreaterThanOrEqual(4.5);
    expect(contrast(color('on-danger'), color('danger'))).toBeGreaterThanOrEqual(4.5);
    expect(contrast(color('text'), color('warn-soft'))).toBeGreaterThanOrEqual(4.5);
    expect(contrast(color('text'), color('bad-soft'))).toBeGreaterThanOrEqual(4.5);
  });

  it('has legible changes of a file', () => {
    expect(contrast(color('state-failed'), color('bad-soft'))).toBeGreaterThanOrEqual(4.5);
    expect(contrast(color('state-completed'), color('good-soft'))).toBeGreaterThanOrEqual(4.5);
  });
});

describe.each([
  ['light', ':root'],
  ['dark', ":root[data-theme='dark']"],
])('the ramp of the %s theme', (_, selector) => {
  it('has more contrast with every step, so that it is readable without hues', () => {
    const theme = tokens(selector);
    const surface = theme.get('surface') as string;
    const steps = [1, 2, 3, 4, 5].map((i) => contrast(theme.get(`ramp-${i}`) as string, surface));
    expect(steps).toEqual([...steps].sort((a, b) => a - b));
    expect(steps[0]).toBeGreaterThanOrEqual(1.8);
    expect(steps[2]).toBeGreaterThanOrEqual(3);
    expect(steps[4]).toBeGreaterThanOrEqual(7);
  });
});

describe('the dark theme', () => {
  it('is the same when chosen and when the system asks for it', () => {
    expect(tokens(':root:not([data-theme])')).toEqual(tokens(":root[data-theme='dark']"));
  });
});

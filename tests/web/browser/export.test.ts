import { readFile } from 'node:fs/promises';

import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';

import { conditionalWorld, smallWorld, threeMetricWorld } from '../mock/scenarios';
import { usageWorld } from '../mock/usage';
import { Harness, pointsOf, waitForPoints } from './harness';

const harness = new Harness();

/** Exports the first chart of the page; returns the name of the file and its content. */
async function exported(page: Page, format: string): Promise<{ name: string; bytes: Buffer }> {
  const saved = page.waitForEvent('download');
  await page.getByLabel('Export').first().selectOption(format);
  const download = await saved;
  return { name: download.suggestedFilename(), bytes: await readFile(await download.path()) };
}

interface SvgCounts {
  error: boolean;
  paths: number;
  texts: string[];
}

function countSvg(page: Page, svg: string): Promise<SvgCounts> {
  return page.evaluate((text) => {
    const parsed = new DOMParser().parseFromString(text, 'image/svg+xml');
    return {
      error: parsed.querySelector('parsererror') !== null,
      paths: parsed.querySelectorAll('path, use').length,
      texts: [...parsed.querySelectorAll('text')].map((each) => each.textContent ?? ''),
    };
  }, svg);
}

describe('the curves', () => {
  it('are exported as SVG, PNG and CSV', async () => {
    const world = smallWorld();
    world.sweep('s1').name = 'a <b> & "c"';
    const page = await harness.open(await harness.serve(world), '/sweeps/s1');
    await waitForPoints(page, pointsOf(world, 's1'));

    const svg = await exported(page, 'SVG');
    expect(svg.name).toBe('s1-accuracy-by-step.svg');
    const counts = await countSvg(page, svg.bytes.toString());
    expect(counts.error).toBe(false);
    expect(counts.paths).toBeGreaterThan(world.trialsOf('s1').length);
    expect(counts.texts).toContain('a <b> & "c": accuracy by step');
    expect(counts.texts).toContain('0.90');
    expect(counts.texts).toContain('best · trial 3');

    const png = await exported(page, 'PNG');
    expect(png.name).toBe('s1-accuracy-by-step.png');
    expect(png.bytes.subarray(1, 4).toString()).toBe('PNG');

    const csv = (await exported(page, 'CSV')).bytes.toString().trim().split('\r\n');
    expect(csv[0]).toBe('trial,step,accuracy');
    expect(csv.length - 1).toBe(pointsOf(world, 's1'));
  });
});

describe('every other chart', () => {
  it.each([
    ['the history', smallWorld, '/sweeps/s1?view=history', '[data-testid=history][data-dots]'],
    ['parallel coordinates', conditionalWorld, '/sweeps/s1?view=parallel', 'canvas[data-strands]'],
    ['the distribution', smallWorld, '/sweeps/s1?view=distribution', '[data-series]'],
    ['the fronts', threeMetricWorld, '/sweeps/s1?view=fronts', '[data-testid=pair][data-dots]'],
    ['the slices', smallWorld, '/sweeps/s1?view=slices', '[data-testid=slice][data-dots]'],
    ['the contour', smallWorld, '/sweeps/s1?view=contour', '[data-testid=contour][data-cells]'],
    ['the timeline', usageWorld, '/executors', 'canvas[data-bars]'],
  ])('is exported: %s', async (_, world, path, ready) => {
    const page = await harness.open(await harness.serve(world()), path);
    await page.locator(ready).first().waitFor();
    const { bytes } = await exported(page, 'SVG');
    const counts = await countSvg(page, bytes.toString());
    expect(counts.error).toBe(false);
    expect(counts.paths).toBeGreaterThan(4);
    expect(counts.texts.length).toBeGreaterThan(4);
    const csv = (await exported(page, 'CSV')).bytes.toString().trim().split('\r\n');
    expect(csv.length).toBeGreaterThan(3);
    const columns = csv.map((line) => line.split(',').length);
    expect(new Set(columns).size).toBe(1);
  });
});

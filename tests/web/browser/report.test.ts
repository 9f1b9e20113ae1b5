import type { Page } from 'playwright-core';
import { afterEach, describe, expect, it } from 'vitest';

import { measuredWorld } from '../mock/measured';
import { failingWorld, populationWorld, smallWorld } from '../mock/scenarios';
import { writeReport } from '../mock/report';
import type { World } from '../mock/world';
import { curves, Harness, pointsOf, row, rowNumbers, waitForPoints } from './harness';

const harness = new Harness();

/** What the pages have requested, except their files. */
const requested: string[] = [];
afterEach(() => expect(requested.splice(0)).toEqual([]));

/** Writes a report, ends the server, and opens the file. */
async function openReport(
  world: World,
  sweep: string,
  { place = '', metrics = [] as string[], dark = false } = {},
): Promise<Page> {
  const server = await harness.serve(world);
  const url = await writeReport(server, sweep, metrics);
  await server.close();
  const page = await harness.stranger({ colorScheme: dark ? 'dark' : 'light' });
  page.on('request', (request) => {
    const address = request.url();
    if (address.split('#')[0] !== url && !/^(data|blob):/.test(address)) requested.push(address);
  });
  await page.goto(url + place);
  return page;
}

describe('a report', () => {
  it('shows table, curves, filter and views of a sweep from a file', async () => {
    const world = smallWorld();
    const page = await openReport(world, 's1');
    await waitForPoints(page, pointsOf(world, 's1'));
    expect(await rowNumbers(page)).toHaveLength(11);
    await page.getByLabel('Filter trials').fill('failed');
    await page.getByText('1 of 11', { exact: true }).waitFor();
    await page.locator('[data-testid=curves][data-lines="1"]').waitFor();
    await page.getByRole('columnheader', { name: 'lr' }).getByRole('button').click();
    await page.getByRole('button', { name: 'History' }).click();
    await page.getByTestId('history').waitFor();
    // The address keeps the state of the page.
    expect(new URL(page.url()).hash).toBe('#/sweeps/s1?q=failed&sort=config.lr&view=history');
    await page.reload();
    await page.getByText('1 of 11', { exact: true }).waitFor();
    await page.getByRole('link', { name: 'Sweep file' }).click();
    await page.getByRole('heading', { name: 'Search space' }).waitFor();
    await page.goBack();
    await page.getByTestId('history').waitFor();
  });

  it('has no control that needs a server', async () => {
    const page = await openReport(smallWorld(), 's1');
    await row(page, 3).waitFor();
    await page.getByTestId('best').waitFor();
    for (const name of ['Download report', 'Pause', 'Kill…', 'Clone…', 'Use this model', 'Replay'])
      expect(await page.getByRole('button', { name }).count(), name).toBe(0);
    for (const name of ['Sweeps', 'Executors', 'Compare with…', 'Edit…'])
      expect(await page.getByRole('link', { name }).count(), name).toBe(0);
    expect(await page.getByTestId('stream').count()).toBe(0);
    expect(await page.locator('.pick-box').count()).toBe(0);
  });

  it('says what it is, and keeps its title', async () => {
    const page = await openReport(smallWorld(), 's1');
    await row(page, 3).waitFor();
    await page.getByTestId('about').getByText('Report of sweep s1, made 2026-03-01').waitFor();
    expect(await page.title()).toBe('s1 · Attune 0.1.0');
    await page.keyboard.press('?');
    await page.getByText('Third-party licences').click();
    await page.getByText('SIL OPEN FONT LICENSE').first().waitFor();
  });

  it('has the pages of the best trials with their decisions, and says so for others', async () => {
    const page = await openReport(smallWorld(), 's1');
    await row(page, 3).getByRole('link', { name: '3' }).click();
    await page.getByRole('heading', { name: 'Trial 3' }).waitFor();
    expect(await page.getByTestId('decisions').locator('tbody tr').count()).toBeGreaterThan(0);
    await page.keyboard.press('u');
    await row(page, 3).waitFor();
    await page.evaluate(() => (location.hash = '#/sweeps/s1/trials/999'));
    await page.getByText('does not contain the page of trial 999').waitFor();
  });

  it('draws many curves as a picture, in both themes', async () => {
    for (const dark of [false, true]) {
      const page = await openReport(measuredWorld(1500, 20), 'big', { metrics: ['loss'], dark });
      await curves(page).and(page.locator('[data-density="1500"][data-strokes="120"]')).waitFor();
      const ground = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
      expect(ground).toBe(dark ? 'rgb(14, 19, 24)' : 'rgb(245, 246, 248)');
      if (dark) continue;
      await page.getByLabel('metric').selectOption('loss');
      await page.getByRole('figure', { name: 'Learning curves of loss' }).waitFor();
      await page.locator('[data-testid=curves][data-density="1500"]').waitFor();
    }
  });

  it('shows failures and lineage', async () => {
    const failing = await openReport(failingWorld(), 's1');
    await failing.getByTestId('cause').getByText('cannot read /data/part-0.csv').waitFor();
    expect(await failing.getByRole('link', { name: 'Its log' }).count()).toBe(0);
    const place = '#/sweeps/s1?view=lineage';
    const population = await openReport(populationWorld(), 's1', { place });
    await population.locator('[data-testid=lineage-lanes][data-lanes="2"]').waitFor();
  });
});

describe('the button of a report', () => {
  it('says why the server refuses', async () => {
    // The mock server makes no reports.
    const page = await harness.open(await harness.serve(smallWorld()), '/sweeps/s1');
    await page.getByRole('button', { name: 'Download report' }).click();
    await page.getByRole('alert').getByText('Sweep s1 has no report.').waitFor();
  });
});

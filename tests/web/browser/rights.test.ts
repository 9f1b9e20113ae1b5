import { describe, expect, it } from 'vitest';

import { smallWorld } from '../mock/scenarios';
import { Harness } from './harness';

const harness = new Harness();

// Each control that changes something, by a part of its name.
const changing =
  /^(Pause|Resume|Stop|Kill|Delete|Undo|Enqueue|Extend|Retry|Continue|Pin|Unpin|Drain|Replay|Create|Revoke|Note)\b/;

const pages = [
  { path: '/', shows: 'fashion-mnist will be deleted.' },
  { path: '/queue', shows: 'Queue' },
  { path: '/executors', shows: 'Executors' },
  { path: '/tokens', shows: 'Only admins see tokens' },
  { path: '/sweeps/s1', shows: 'will be deleted.' },
  { path: '/sweeps/s2', shows: 'Trials' },
  { path: '/sweeps/s1?tab=file', shows: 'will be deleted.' },
  { path: '/sweeps/s1/trials/0', shows: 'Checkpoints' },
  { path: '/sweeps/s1/compare?trials=0,1', shows: 'trial' },
  { path: '/compare?sweeps=s1,s2', shows: 's1' },
];

describe('a viewer', () => {
  it('sees no control that the server would refuse, on any page', async () => {
    const world = smallWorld();
    world.changeSweep('s1', 'completed', 'all trials have ended');
    world.scheduleDeletion('s1', 600);
    const server = await harness.serve(world);
    world.role = 'viewer';
    let known = 0;
    for (const { path, shows } of pages) {
      const page = await harness.open(server, path);
      await page.locator('main').getByText(shows).first().waitFor();
      await expect
        .poll(() => server.requests.filter((one) => one === 'GET /session').length)
        .toBe(++known);
      await page.getByTestId('stream').getByText('live').waitFor();
      const names = await page
        .locator('button')
        .evaluateAll((all) => all.map((each) => each.ariaLabel ?? each.textContent ?? ''));
      expect(
        names.filter((name) => changing.test(name.trim())),
        path,
      ).toEqual([]);
      await page.getByRole('button', { name: 'Log out' }).waitFor();
      await page.close();
    }
  });

  it('differs from an admin, who sees these controls', async () => {
    const world = smallWorld();
    const server = await harness.serve(world);
    const page = await harness.open(server, '/sweeps/s1');
    await page.getByRole('button', { name: 'Kill…' }).waitFor();
    await page.getByRole('button', { name: 'Replay' }).waitFor();
  });
});

describe('tokens', () => {
  it('are created with a secret that is shown once, and revoked after a question', async () => {
    const world = smallWorld();
    world.tokens.push({ name: 'ada', role: 'admin', expires: null, expired: false });
    const server = await harness.serve(world);
    const page = await harness.open(server, '/');
    await page.getByRole('link', { name: 'Tokens' }).click();
    await page.getByRole('row', { name: 'ada (you)' }).waitFor();
    await page.getByRole('button', { name: 'Create…' }).click();
    const dialog = page.getByRole('dialog', { name: 'Create a token' });
    await dialog.getByLabel('Name').fill('ada');
    await dialog.getByRole('button', { name: 'Create' }).click();
    await dialog.getByText('ada already has a token').waitFor();
    await dialog.getByLabel('Name').fill('bob');
    await dialog.getByRole('button', { name: 'Create' }).click();
    await page.getByTestId('secret').getByText('shown-only-once').waitFor();
    await page.getByRole('button', { name: 'Copy token of bob' }).waitFor();
    await page.reload();
    await page.getByRole('row', { name: /^bob/ }).waitFor();
    expect(await page.getByTestId('secret').count()).toBe(0);

    await page.getByRole('button', { name: 'Revoke the token of bob' }).click();
    await page.getByRole('dialog').getByText('Its requests are refused').waitFor();
    expect(server.requests).not.toContain('DELETE /tokens/bob');
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
    await page.getByRole('row', { name: /^bob/ }).waitFor({ state: 'detached' });
    expect(server.requests).toContain('DELETE /tokens/bob');
  });
});

describe('on a narrow screen', () => {
  it('the button to log out is in view', async () => {
    const server = await harness.serve(smallWorld());
    const viewport = { width: 390, height: 800 };
    const page = await harness.open(server, '/', { viewport });
    await page.getByRole('link', { name: 'Tokens' }).waitFor();
    const box = await page.getByRole('button', { name: 'Log out' }).boundingBox();
    expect(box!.x + box!.width).toBeLessThanOrEqual(viewport.width);
  });
});

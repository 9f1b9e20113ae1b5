import { describe, expect, it } from 'vitest';

import { smallWorld } from '../mock/scenarios';
import { Harness, row } from './harness';

const harness = new Harness();

describe('stopping and killing', () => {
  it('asks first, naming how many running trials a kill ends', async () => {
    const world = smallWorld();
    const server = await harness.serve(world);
    const page = await harness.open(server, '/sweeps/s1');
    await page.getByRole('button', { name: 'Kill…' }).click();
    const dialog = page.getByRole('dialog', { name: 'Kill fashion-mnist?' });
    await dialog.getByText('2 running trials will end now.').waitFor();
    expect(await page.evaluate(() => document.activeElement?.textContent)).toBe('Cancel');
    await page.keyboard.press('Enter');
    await dialog.waitFor({ state: 'detached' });
    expect(server.requests.some((each) => each.startsWith('POST'))).toBe(false);

    await page.getByRole('button', { name: 'Kill…' }).click();
    await dialog.getByRole('button', { name: 'Kill now' }).click();
    await page.locator('.page-head .state').getByText('killed').waitFor();
    await row(page, 9).getByText('Killed with its sweep.').waitFor();
    expect(server.requests).toContain('POST /sweeps/s1:kill');
    expect(await page.getByRole('button', { name: 'Kill…' }).count()).toBe(0);
  });

  it('asks another question before a stop', async () => {
    const server = await harness.serve(smallWorld());
    const page = await harness.open(server, '/sweeps/s1');
    await page.getByRole('button', { name: 'Stop…' }).click();
    await page.getByText('2 running trials will finish their training.').waitFor();
    await page.getByRole('button', { name: 'Stop the sweep' }).click();
    await page.getByText('2 running trials will finish, and nothing else starts.').waitFor();
    await page.getByText('Ending.').waitFor();
    expect(await page.getByRole('button', { name: 'Stop…' }).count()).toBe(0);
    expect(server.requests).toContain('POST /sweeps/s1:stop');
  });

  it('says when a request was too late', async () => {
    const world = smallWorld();
    const server = await harness.serve(world);
    const page = await harness.open(server, '/sweeps/s1');
    await page.getByRole('button', { name: 'Stop…' }).click();
    // The sweep has ended, and the page has no event of it yet.
    world.sweep('s1').ended = '2026-11-21T12:00:00.000000Z';
    await page.getByRole('button', { name: 'Stop the sweep' }).click();
    const dialog = page.getByRole('dialog');
    await dialog
      .getByRole('alert')
      .getByText('sweep s1 has already ended: it is running')
      .waitFor();
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
  });
});

describe('notes and tags', () => {
  it('of an ended sweep are changed in a dialog, without undoing the tags of others', async () => {
    const world = smallWorld();
    world.changeSweep('s1', 'completed', 'all trials have ended');
    const server = await harness.serve(world);
    const page = await harness.open(server, '/sweeps/s1');
    const notes = page.getByRole('region', { name: 'Note and tags' });
    await notes.getByRole('button', { name: 'Note and tags…' }).click();
    const dialog = page.getByRole('dialog', { name: 'Note and tags of fashion-mnist' });
    await dialog.getByLabel('Note').fill('two\nlines');
    await dialog.getByLabel('Tags').fill('best, lr-1');
    world.annotate(world.sweep('s1'), { add_tags: ['by-another'] });
    await notes.getByText('by-another').waitFor();
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.waitFor({ state: 'detached' });
    await notes.getByText('lr-1', { exact: true }).waitFor();
    expect(await notes.locator('.note').textContent()).toBe('two\nlines');
    expect(server.bodies.at(-1)).toEqual({ note: 'two\nlines', add_tags: ['best', 'lr-1'] });
    expect(world.sweep('s1').tags).toEqual(['by-another', 'best', 'lr-1']);
  });

  it('of a trial are in an optional column, and a refusal stays in the dialog', async () => {
    const world = smallWorld();
    const server = await harness.serve(world);
    const page = await harness.open(server, '/sweeps/s1/trials/3');
    await page.getByRole('button', { name: 'Note and tags…' }).click();
    const dialog = page.getByRole('dialog', { name: 'Note and tags of trial 3' });
    await dialog.getByLabel('Tags').fill('it"s');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.getByRole('alert').getByText('is not a tag').waitFor();
    await dialog.getByLabel('Tags').fill('odd');
    await dialog.getByRole('button', { name: 'Save' }).click();
    const notes = page.getByRole('region', { name: 'Note and tags' });
    await notes.getByText('odd', { exact: true }).waitFor();

    await page.goto(`${server.url}/sweeps/s1?columns=number,tags&q=tag:odd`);
    await row(page, 3).getByText('odd').waitFor();
    expect(await page.locator('.trials tbody tr').count()).toBe(1);
  });
});

describe('deleting', () => {
  it('asks first, and leaves the page of the deleted sweep', async () => {
    const world = smallWorld();
    world.changeSweep('s1', 'completed', 'all trials have ended');
    const server = await harness.serve(world);
    const page = await harness.open(server, '/sweeps/s1');
    const other = await harness.open(server, '/sweeps/s1/trials/0');
    await other.getByRole('heading', { name: 'Trial 0' }).waitFor();
    await page.getByRole('button', { name: 'Delete…' }).click();
    const dialog = page.getByRole('dialog', { name: 'Delete fashion-mnist?' });
    await dialog.getByText('trials will be deleted with their checkpoints').waitFor();
    await dialog.getByRole('button', { name: 'Delete' }).click();
    await page.locator('a[href="/sweeps/s2"]').first().waitFor();
    expect(server.requests).toContain('DELETE /sweeps/s1?delay=10');
    world.deleteSweep('s1'); // after the delay
    await page.locator('a[href="/sweeps/s1"]').waitFor({ state: 'detached' });
    await other.getByText('No such sweep').waitFor();
  });

  it('can be undone on every page of the sweep, also after a reload and by another user', async () => {
    const world = smallWorld();
    world.changeSweep('s1', 'completed', 'all trials have ended');
    const server = await harness.serve(world);
    const page = await harness.open(server, '/sweeps/s1');
    const trial = await harness.open(server, '/sweeps/s1/trials/0');
    await trial.getByRole('heading', { name: 'Trial 0' }).waitFor();
    await page.getByRole('button', { name: 'Delete…' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
    await page.getByRole('heading', { name: 'Sweeps' }).waitFor();
    await page.reload();
    const bar = page.getByTestId('deletion');
    await bar.getByText('fashion-mnist will be deleted.').waitFor();
    await bar.getByText(/^\d+ s left$/).waitFor();
    await trial.getByTestId('deletion').waitFor();

    await page.goto(`${server.url}/sweeps/s1`);
    await bar.waitFor();
    expect(await page.getByRole('button', { name: 'Delete…' }).count()).toBe(0);
    await bar.getByRole('button', { name: 'Undo' }).click();
    await page.getByText('s1: it is kept').waitFor();
    await page.getByRole('button', { name: 'Delete…' }).waitFor();
    await trial.getByTestId('deletion').waitFor({ state: 'detached' });
    expect(server.requests).toContain('POST /sweeps/s1:undelete');
  });

  it('shows on the page that another user has deleted the sweep', async () => {
    const world = smallWorld();
    const server = await harness.serve(world);
    const page = await harness.open(server, '/sweeps/s1');
    await page.getByRole('button', { name: 'Kill…' }).waitFor();
    world.deleteSweep('s1');
    await page.getByText('This sweep was deleted').waitFor();
  });
});

describe('pausing', () => {
  it('says how many trials it interrupts, and becomes a button to resume', async () => {
    const server = await harness.serve(smallWorld());
    const page = await harness.open(server, '/sweeps/s1');
    await page.getByRole('button', { name: 'Pause' }).click();
    await page.getByText('2 running trials will save a checkpoint and leave.').waitFor();
    await page.locator('.page-head .state').getByText('paused').waitFor();
    const leaves = row(page, 9).getByText('Saves a checkpoint and leaves at its next report.');
    await leaves.waitFor();
    await page.getByRole('button', { name: 'Resume' }).click();
    await page.locator('.page-head .state').getByText('running').waitFor();
    await leaves.waitFor({ state: 'detached' });
    expect(server.requests).toContain('POST /sweeps/s1:pause');
    expect(server.requests).toContain('POST /sweeps/s1:resume');
  });

  it('shows next to the button why a request was too late', async () => {
    const world = smallWorld();
    const server = await harness.serve(world);
    const page = await harness.open(server, '/sweeps/s1');
    const pause = page.getByRole('button', { name: 'Pause' });
    await pause.waitFor();
    // The sweep has ended, and the page has no event of it yet.
    world.sweep('s1').ended = '2026-11-21T12:00:00.000000Z';
    await pause.click();
    const refusal = page.getByRole('alert').getByText('sweep s1 has already ended');
    await refusal.waitFor();
    await page.getByRole('button', { name: 'Dismiss' }).click();
    await refusal.waitFor({ state: 'detached' });
  });
});

describe('extending', () => {
  it('sends the limits that were changed, and opens an ended sweep again', async () => {
    const world = smallWorld();
    const server = await harness.serve(world);
    world.changeSweep('s1', 'completed', 'all trials have ended');
    const page = await harness.open(server, '/sweeps/s1');
    await page.getByRole('button', { name: 'Extend…' }).click();
    const dialog = page.getByRole('dialog', { name: 'Extend fashion-mnist' });
    await dialog.getByText('The sweep has ended; it will run again.').waitFor();
    await dialog.getByLabel('Trials in total').fill('40');
    await dialog.getByLabel('Time').fill('2h');
    await dialog.getByRole('button', { name: 'Extend' }).click();
    await page.locator('.page-head .state').getByText('running').waitFor();
    await page.getByText('of 40 trials ended').waitFor();
    expect(server.bodies).toEqual([{ max_trials: 40, max_time: '2h' }]);
  });

  it('does not ask for GPU-hours if programs ask for the trials', async () => {
    const world = smallWorld();
    world.sweep('s1').external = true;
    const page = await harness.open(await harness.serve(world), '/sweeps/s1');
    await page.getByRole('button', { name: 'Extend…' }).click();
    await page.getByRole('dialog').getByLabel('Time').waitFor();
    expect(await page.getByLabel('GPU-hours').count()).toBe(0);
  });
});

describe('enqueueing', () => {
  it('begins with the best configuration, and keeps what was typed when it is refused', async () => {
    const world = smallWorld();
    const server = await harness.serve(world);
    const page = await harness.open(server, '/sweeps/s1');
    await page.getByRole('button', { name: 'Enqueue…' }).click();
    const dialog = page.getByRole('dialog', { name: 'Enqueue a configuration' });
    const lr = dialog.getByLabel('lr');
    expect(await lr.inputValue()).toBe(String(world.sweep('s1').best?.config.lr));
    await lr.fill('0.25');
    await dialog.getByLabel('momentum').fill('');
    await dialog.getByLabel('optimizer').selectOption('adamw');
    await dialog.getByRole('button', { name: 'Enqueue' }).click();
    await dialog.getByText('config.momentum: has no value; give it one').waitFor();
    await dialog.getByLabel('momentum').fill('0.5');
    // Uses only the keyboard: Enter in a field confirms.
    await page.keyboard.press('Enter');
    await dialog.waitFor({ state: 'detached' });
    await page.getByText('Trial 11 is enqueued; it starts before new proposals.').waitFor();
    await row(page, 11).waitFor();
    expect(server.bodies.at(-1)).toMatchObject({
      config: { lr: 0.25, momentum: 0.5, optimizer: 'adamw' },
    });
  });
});

describe('the keyboard', () => {
  it('enqueues a copy of the selected trial', async () => {
    const world = smallWorld();
    const page = await harness.open(await harness.serve(world), '/sweeps/s1?trial=9');
    await page.getByRole('button', { name: 'Enqueue…' }).waitFor();
    await page.keyboard.press('e');
    const dialog = page.getByRole('dialog', { name: 'Enqueue a configuration' });
    await dialog.getByText('The values are those of trial 9.').waitFor();
    expect(await dialog.getByLabel('lr').inputValue()).toBe(String(world.trial('s1', 9).config.lr));
  });

  it('opens and closes a dialog, and the focus returns', async () => {
    const page = await harness.open(await harness.serve(smallWorld()), '/sweeps/s1');
    await page.getByRole('button', { name: 'Extend…' }).focus();
    await page.keyboard.press('Enter');
    const dialog = page.getByRole('dialog', { name: 'Extend fashion-mnist' });
    await dialog.waitFor();
    expect(await page.evaluate(() => document.activeElement?.getAttribute('name'))).toBe(
      'max_trials',
    );
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
    expect(await page.evaluate(() => document.activeElement?.textContent)).toBe('Extend…');
  });
});

describe('a trial', () => {
  it('is killed after a question, then retried or continued', async () => {
    const server = await harness.serve(smallWorld());
    const page = await harness.open(server, '/sweeps/s1/trials/9');
    const state = page.locator('.page-head .state');
    await page.getByRole('button', { name: 'Kill…' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Kill now' }).click();
    await state.getByText('killed').waitFor();

    await page.getByRole('button', { name: 'Continue…' }).click();
    const dialog = page.getByRole('dialog', { name: 'Continue trial 9?' });
    await dialog.getByLabel('Until step').fill('81');
    await dialog.getByRole('button', { name: 'Continue' }).click();
    await state.getByText('pending').waitFor();
    await page.getByTestId('why').getByText('Continues to step 81 on request.').waitFor();
    expect(server.requests).toContain('POST /sweeps/s1/trials/9:continue');
    expect(server.bodies.at(-1)).toEqual({ until: 81 });
  });

  it('that has no checkpoint is retried from the beginning', async () => {
    const server = await harness.serve(smallWorld());
    const page = await harness.open(server, '/sweeps/s1/trials/8');
    await page.getByRole('button', { name: 'Retry…' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Retry' }).click();
    await page.getByText('It will start from the beginning.').waitFor();
    expect(server.bodies).toEqual([{ from_start: true }]);
  });

  it('says that it ends at its next report, until it has', async () => {
    const world = smallWorld();
    const page = await harness.open(await harness.serve(world), '/sweeps/s1/trials/9');
    const trial = world.trial('s1', 9);
    await page.getByTestId('stream').getByText('live').waitFor();
    world.yield(trial, 'stop', 'stopped: max_trial_time of 2h is over');
    const why = page.getByTestId('why');
    await why.getByText('Ends at its next report: max_trial_time of 2h is over.').waitFor();
    world.change(trial, 'stopped', 'stopped: max_trial_time of 2h is over');
    await why.getByText('Stopped: max_trial_time of 2h is over.').waitFor();
  });

  it('says what it waits for', async () => {
    const world = smallWorld();
    const trial = world.addTrial('s1', { lr: 0.1 });
    trial.waiting_reason = 'needs 8 GPUs; 6 are free on box';
    const server = await harness.serve(world);
    const page = await harness.open(server, `/sweeps/s1/trials/${trial.number}`);
    await page.getByText('Needs 8 GPUs; 6 are free on box.').waitFor();
    await page.goto(`${server.url}/sweeps/s1`);
    await row(page, trial.number).getByText('Needs 8 GPUs').waitFor();
  });
});

describe('checkpoints', () => {
  it('are pinned, and unpinned again', async () => {
    const world = smallWorld();
    const server = await harness.serve(world);
    const page = await harness.open(server, '/sweeps/s1/trials/3');
    const { attempt, step } = world.trial('s1', 3).checkpoints.at(-1) ?? { attempt: 0, step: 0 };
    const card = page.getByTestId('checkpoints');
    await card
      .getByRole('button', { name: `Pin the checkpoint at step ${step}`, exact: true })
      .click();
    await card.getByText('· pinned').waitFor();
    await card.getByRole('button', { name: `Unpin the checkpoint at step ${step}` }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Unpin' }).click();
    await card.getByText('· pinned').waitFor({ state: 'detached' });
    expect(server.requests).toContain(
      `POST /sweeps/s1/trials/3/checkpoints/${attempt}-${step}:pin`,
    );
  });

  it('that were deleted show the reason', async () => {
    const world = smallWorld();
    const page = await harness.open(await harness.serve(world), '/sweeps/s1/trials/3');
    const trial = world.trial('s1', 3);
    const { attempt, step } = trial.checkpoints.at(-1) ?? { attempt: 0, step: 0 };
    await page.getByTestId('stream').getByText('live').waitFor();
    world.drop(trial, attempt, step, 'not among the newest 1 or the best 1');
    await page.getByText('deleted. Not among the newest 1 or the best 1.').waitFor();
  });
});

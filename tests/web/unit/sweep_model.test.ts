import { describe, expect, it } from 'vitest';

import type { AttuneEvent } from '../../../web/src/api/events';
import type { Sweep } from '../../../web/src/api/contract';
import { decodeCurves, type CurvePage } from '../../../web/src/api/curves';
import { SweepModel } from '../../../web/src/model/sweep_model';
import { curveOf } from '../../../web/src/model/trial_model';
import { encodeCurves } from '../mock/curve_pages';
import { randomStream } from '../mock/random';
import { runAsha, smallWorld } from '../mock/scenarios';
import { World } from '../mock/world';

/** The present answers to a page. These are copies, because the world changes its objects. */
function snapshot(world: World, id: string, metric = 'accuracy'): SweepModel {
  const { seq } = world;
  const model = new SweepModel(structuredClone(world.sweep(id)), seq, metric);
  model.addTrials(structuredClone(world.trialsOf(id)), seq);
  model.addCurves(curvePage(world, id, metric), 256);
  model.completeTrials();
  return model;
}

/** The page of curves that the server would send now. */
function curvePage(world: World, id: string, metric = 'accuracy'): CurvePage {
  const trials = world.trialsOf(id).map((trial) => {
    const { steps, values } = world.pointsOf(trial, metric);
    const segments = steps.slice(0, 1).map((step) => ({ attempt: 1, step }));
    return { number: trial.number, steps, values, segments, clones: [] };
  });
  return decodeCurves(encodeCurves(trials, world.seq));
}

/** All curves of a model; the values are 32-bit numbers. */
function curvesOf({ curves }: SweepModel): Record<number, [number[], number[]]> {
  return Object.fromEntries(
    [...curves.numbers()]
      .sort((a, b) => a - b)
      .map((number) => {
        const { steps = [], values = [] } = curves.get(number) ?? {};
        return [number, [[...steps], [...values].map(Math.fround)]];
      }),
  );
}

function emptySweep(changes: Partial<Sweep> = {}): {
  world: World;
  model: SweepModel;
} {
  const world = new World();
  world.addSweep({ id: 's1', ...changes });
  return { world, model: snapshot(world, 's1') };
}

function since(world: World, model: SweepModel): AttuneEvent[] {
  return structuredClone(world.eventsAfter(model.seq).map(([event]) => event));
}

describe('a sweep kept current by events', () => {
  it('is the same as one read afterwards', () => {
    const { world, model } = emptySweep();
    runAsha(world, 's1', 20, 3);
    model.apply(since(world, model));

    const later = snapshot(world, 's1');
    expect(curvesOf(model)).toEqual(curvesOf(later));
    expect(model.sweep.trials).toEqual(later.sweep.trials);
    for (const [number, row] of later.trials) {
      const { state, reason, step, best, seconds, metrics, config, attempt_count } = row;
      expect(model.trials.get(number)).toMatchObject({
        ...{ state, reason, step, best, seconds, metrics, config, attempt_count },
      });
    }
    expect(model.sweep.best?.value).toBe(later.sweep.best?.value);
    expect(model.sweep.best?.trial).toBe(later.sweep.best?.trial);
  });

  it('is the same however the events are cut into frames', () => {
    const random = randomStream(17);
    const { world, model } = emptySweep();
    const other = snapshot(world, 's1');
    runAsha(world, 's1', 12, 8);
    const events = since(world, model);
    model.apply(events);
    while (events.length > 0) other.apply(events.splice(0, 1 + Math.floor(random() * 5)));
    expect([...other.trials]).toEqual([...model.trials]);
    expect(curvesOf(other)).toEqual(curvesOf(model));
    expect(other.sweep).toEqual(model.sweep);
  });

  it('takes each event once, also when a reconnection brings some again', () => {
    const { world, model } = emptySweep();
    runAsha(world, 's1', 3, 1);
    const events = since(world, model);
    model.apply(events);
    const points = model.curves.get(0)?.length;
    model.apply(events);
    expect(model.curves.get(0)?.length).toBe(points);
    expect(model.seq).toBe(world.seq);
  });

  it('takes all events of a fact, which have one number, even if they arrive in parts', () => {
    const { world, model } = emptySweep();
    const trial = world.addTrial('s1', { lr: 0.1 });
    world.start(trial);
    for (const event of since(world, model)) model.apply([event]);
    expect(model.trials.get(0)).toMatchObject({ state: 'running', attempt_count: 1 });

    world.report(trial, 1, { accuracy: 0.7 });
    const facts = { rule: 'asha', rung: 1, value: 0.7, cutoff: 0.8, rank: 2, peers: 2 };
    world.decide(trial, { step: 1, verdict: 'pause', reason: 'paused at step 1', ...facts });
    model.apply(since(world, model));
    expect(model.trials.get(0)).toMatchObject({ state: 'paused', reason: 'paused at step 1' });
    expect(model.sweep.trials.paused).toBe(1);

    world.promote(trial, 'promoted at rung 1');
    model.apply(since(world, model));
    expect(model.trials.get(0)).toMatchObject({ state: 'running', attempt_count: 2 });
  });

  it('accepts trials that are newer than their curves', () => {
    const world = smallWorld();
    const page = curvePage(world, 's1');
    world.report(world.trial('s1', 10), 2, { accuracy: 0.7 });
    // The page reads its trials only now, after the report that its curves do not have.
    const late = new SweepModel(structuredClone(world.sweep('s1')), world.seq);
    late.addTrials(structuredClone(world.trialsOf('s1')), world.seq);
    late.startAfter(page.seq);
    late.addCurves(page, 256);
    late.apply(since(world, late));
    expect(late.curves.get(10)?.steps).toEqual([1, 2]);
    expect(late.trials.get(10)?.step).toBe(2);
  });

  it('applies to a part what arrived while it was read', () => {
    const world = smallWorld();
    const first = structuredClone(world.trialsOf('s1'));
    const page = curvePage(world, 's1');
    const { seq } = world;
    const model = new SweepModel(structuredClone(world.sweep('s1')), seq);
    model.addTrials(first.slice(0, 3), seq);
    world.report(world.trial('s1', 10), 2, { accuracy: 0.7 });
    world.change(world.trial('s1', 9), 'killed', 'killed by a person');
    model.apply(since(world, model));
    expect(model.trials.has(10)).toBe(false);
    // Older parts arrive now.
    model.addTrials(first, seq);
    model.addCurves(page, 64);
    model.completeTrials();
    expect(model.trials.get(10)).toMatchObject({ step: 2 });
    expect(model.trials.get(9)).toMatchObject({ state: 'killed' });
    expect(model.curves.get(10)?.steps).toEqual([1, 2]);
    expect(model.sweep.trials).toMatchObject({ killed: 1, running: 1 });
  });

  it('keeps a curve that is known with more points', () => {
    const world = smallWorld();
    const model = snapshot(world, 's1');
    const points = model.curves.lengthOf(3);
    world.report(world.trial('s1', 10), 2, { accuracy: 0.7 });
    model.apply(since(world, model));
    model.addCurves(decodeCurves(encodeCurves([], world.seq)), 64);
    const [coarse] = [{ number: 3, steps: [9], values: [1], segments: [], clones: [] }];
    model.addCurves(decodeCurves(encodeCurves([coarse], world.seq)), 64);
    expect(model.curves.lengthOf(3)).toBe(points);
    expect(model.curves.get(10)?.steps).toEqual([1, 2]);
  });

  it('lists the rows that changed since the last time', () => {
    const world = smallWorld();
    const model = snapshot(world, 's1');
    model.commit();
    expect(model.changes?.size).toBe(11);
    world.report(world.trial('s1', 10), 2, { accuracy: 0.7 });
    const untouched = model.trials.get(3);
    model.apply(since(world, model));
    model.commit();
    expect([...(model.changes ?? [])]).toEqual([10]);
    expect(model.trials.get(3)).toBe(untouched);
  });

  it('knows the donor of a trial from verdicts and from promotions', () => {
    const { world, model } = emptySweep();
    const trial = world.addTrial('s1', { lr: 0.1 });
    world.start(trial);
    world.report(trial, 2, { accuracy: 0.7 });
    const facts = { rule: 'pbt', rung: 2, value: 0.7, cutoff: 0.8, rank: 2, peers: 2 };
    world.decide(trial, { step: 2, verdict: 'exploit', reason: '', ...facts });
    world.change(trial, 'pending', '');
    const events = since(world, model).map((event) =>
      event.kind === 'trial_decided'
        ? { ...event, donor: 7, donor_step: 2 }
        : event.kind === 'trial_changed' && event.state === 'pending'
          ? { ...event, donor: 8, donor_step: 4, config: { lr: 0.2 } }
          : event,
    );
    model.apply(events);
    expect(model.curves.get(trial.number)?.clones).toEqual([
      { donor: 7, step: 2 },
      { donor: 8, step: 4 },
    ]);
    expect(model.trials.get(trial.number)?.config).toEqual({ lr: 0.2 });
  });

  it('ignores the events of other sweeps', () => {
    const { world, model } = emptySweep();
    world.addSweep({ id: 's2' });
    world.addTrial('s2', { lr: 0.1 });
    model.apply(world.events);
    expect(model.trials.size).toBe(0);
  });

  it('can draw another metric without mixing both', () => {
    const world = smallWorld();
    const model = snapshot(world, 's1', 'loss');
    const before = model.trials.get(10)?.best;
    world.report(world.trial('s1', 10), 2, { accuracy: 0.1, loss: 0.001 });
    model.apply(since(world, model));
    expect(model.curves.get(10)?.values.at(-1)).toBe(0.001);
    expect(model.trials.get(10)?.best).toBe(before);
    expect([...model.metricNames].sort()).toEqual(['accuracy', 'loss']);
  });

  it('draws logged values, and does not count them as reports', () => {
    const world = smallWorld();
    const model = snapshot(world, 's1', 'batch_loss');
    const { step, best } = model.trials.get(10) ?? {};
    world.logMetrics(world.trial('s1', 10), 0.5, { batch_loss: 2 });
    world.logMetrics(world.trial('s1', 10), 0.75, { batch_loss: 1, accuracy: 1 });
    expect(model.apply(since(world, model))).toBe(false);
    expect(model.curves.get(10)?.steps).toEqual([0.5, 0.75]);
    expect(model.trials.get(10)).toMatchObject({ step, best });
    expect(model.metricNames.has('batch_loss')).toBe(true);
    expect(snapshot(world, 's1').metricNames.has('batch_loss')).toBe(true);
  });
});

describe('the curve of a trial', () => {
  const at = (steps: number[], attempt = 1) =>
    steps.map((step) => ({ attempt, step, metrics: { loss: step, lr: 1 } }));
  const attempts = [
    { number: 1, resumed_from: null },
    { number: 2, resumed_from: 1 },
  ];

  it('has reported and logged values by step', () => {
    const curve = curveOf(at([1, 2]), at([0.5, 1, 1.5, 1.75, 1.25]), attempts, 'loss');
    expect(curve.steps).toEqual([0.5, 1, 1.25, 2]);
    expect(curveOf(at([]), at([0.5, 0.25]), attempts, 'lr').steps).toEqual([0.25]);
  });

  it('has no reports that a newer attempt has replaced', () => {
    const history = [...at([1, 2, 3, 4]), ...at([3], 2)];
    const curve = curveOf(history, at([3.5]), attempts, 'loss');
    expect(curve.steps).toEqual([1, 3, 3.5, 4]);
    expect(curve.seams).toEqual([4]);
  });
});

describe('the best trial', () => {
  it('changes with a better report, and asks for the sweep to be read again', () => {
    const world = smallWorld();
    const model = snapshot(world, 's1');
    world.report(world.trial('s1', 10), 2, { accuracy: 0.99 });
    expect(model.apply(since(world, model))).toBe(true);
    expect(model.sweep.best).toMatchObject({
      trial: 10,
      step: 2,
      value: 0.99,
      checkpoint: null,
    });
    expect(model.sweep.best?.config).toEqual(world.trial('s1', 10).config);
  });

  it('does not change with a worse or equal report or NaN, which cause no request', () => {
    const world = smallWorld();
    const model = snapshot(world, 's1');
    const best = model.sweep.best;
    for (const [step, accuracy] of [
      [2, 0.1],
      [3, best?.value ?? 0],
      [4, 'nan'],
    ] as const) {
      world.report(world.trial('s1', 10), step, { accuracy });
    }
    expect(model.apply(since(world, model))).toBe(false);
    expect(model.sweep.best).toEqual(best);
  });

  it('is the lowest when the metric is to be small', () => {
    const { world, model } = emptySweep({
      metric: { name: 'loss', mode: 'min' },
    });
    const trial = world.addTrial('s1', { lr: 1 });
    world.report(trial, 1, { loss: 2 });
    world.report(trial, 2, { loss: 1 });
    world.report(trial, 3, { loss: 3 });
    model.apply(since(world, model));
    expect(model.sweep.best).toMatchObject({ step: 2, value: 1 });
    expect(model.trials.get(0)?.best).toBe(1);
  });
});

describe('data that events do not contain', () => {
  it('is asked for when trials change, but not at every report', () => {
    const world = smallWorld();
    const model = snapshot(world, 's1');
    world.report(world.trial('s1', 10), 2, { accuracy: 0.1 });
    expect(model.apply(since(world, model))).toBe(false);
    world.change(world.trial('s1', 10), 'killed', 'killed by a person');
    expect(model.apply(since(world, model))).toBe(true);
    world.changeSweep('s1', 'killed', 'killed by a person');
    expect(model.apply(since(world, model))).toBe(true);
    expect(model.sweep).toMatchObject({
      state: 'killed',
      trials: { killed: 1, running: 1 },
    });
  });

  it('does not change the counts, which are newer in the model', () => {
    const world = smallWorld();
    const model = snapshot(world, 's1');
    const stale = structuredClone(world.sweep('s1'));
    world.change(world.trial('s1', 9), 'completed', 'reached step 9, the last');
    model.apply(since(world, model));
    model.refresh({ ...stale, waiting_reason: 'trial 11 needs 2 CPUs' });
    expect(model.sweep.trials.running).toBe(1);
    expect(model.sweep.waiting_reason).toBe('trial 11 needs 2 CPUs');
  });

  it('keeps its state while it is stopping, and takes new limits', () => {
    const { world, model } = emptySweep();
    world.changeSweep('s1', 'paused', 'paused on request');
    world.stopSweep('s1', 'stopped', 'stopped on request');
    model.apply(since(world, model));
    const stopping = { reason: 'stopped on request', end_state: 'stopped' };
    expect(model.sweep).toMatchObject({ state: 'paused', ...stopping });
    world.edit('s1', { max_trials: 40, max_step: 27 }, ['stop.max_trials 40']);
    model.apply(since(world, model));
    expect(model.sweep).toMatchObject({ max_trials: 40, max_step: 27, end_state: '' });
  });

  it('takes what an edit changes, and says who made it', () => {
    const { world, model } = emptySweep();
    world.edit('s1', { max_trials: 40, priority: 2 }, ['stop.max_trials 40', 'priority 2']);
    expect(model.apply(since(world, model))).toBe(true);
    expect(model.sweep).toMatchObject({ max_trials: 40, priority: 2 });
    expect(model.sweep.edited).toMatchObject({
      actor: 'admin',
      changes: ['stop.max_trials 40', 'priority 2'],
    });
  });

  it('takes notes and tags, and leaves what an event does not name', () => {
    const { world, model } = emptySweep();
    world.addTrial('s1', {});
    world.annotate(world.sweep('s1'), { note: 'slow', tags: ['a'] });
    world.annotate(world.trial('s1', 0), { tags: ['best'] });
    expect(model.apply(since(world, model))).toBe(true); // for the new trial
    const { seq } = world;
    const change = { time: '2026-11-21T10:00:00.000000Z', actor: 'ada', sweep: 's1' };
    expect(
      model.apply([
        { ...change, kind: 'sweep_annotated', seq: seq + 1, tags: ['b'] },
        { ...change, kind: 'trial_annotated', seq: seq + 2, trial: 0, note: 'odd' },
      ]),
    ).toBe(false);
    expect([model.sweep.note, model.sweep.tags]).toEqual(['slow', ['b']]);
    expect(model.trials.get(0)?.tags).toEqual(['best']);
  });

  it('cancels the effects of a pause on its trials when it resumes', () => {
    const { world, model } = emptySweep();
    const [running, pending] = [world.addTrial('s1', { lr: 1 }), world.addTrial('s1', { lr: 2 })];
    world.start(running);
    const of = (trial: { number: number }) => model.trials.get(trial.number);
    world.changeSweep('s1', 'paused', 'paused on request');
    world.yield(running, 'pause', 'saved and left: its sweep was paused');
    model.apply(since(world, model));
    expect(of(running)).toMatchObject({ waiting_reason: '', yielding: { verdict: 'pause' } });
    expect(of(pending)).toMatchObject({
      waiting_reason: 'its sweep is paused',
      yielding: undefined,
    });
    world.changeSweep('s1', 'running', '');
    model.apply(since(world, model));
    expect(of(running)).toMatchObject({ waiting_reason: '', yielding: undefined });
    expect(of(pending)).toMatchObject({ waiting_reason: '', yielding: undefined });
  });

  it('remembers that a trial ends at its next report until it has ended', () => {
    const { world, model } = emptySweep();
    const trial = world.addTrial('s1', { lr: 1 });
    world.start(trial);
    world.yield(trial, 'stop', 'stopped: max_trial_time of 2h is over');
    world.changeSweep('s1', 'running', '');
    model.apply(since(world, model));
    expect(model.trials.get(0)?.yielding).toMatchObject({ verdict: 'stop' });
    world.change(trial, 'stopped', 'stopped: max_trial_time of 2h is over');
    model.apply(since(world, model));
    expect(model.trials.get(0)?.yielding).toBeUndefined();
  });

  it('forgets that a trial ends at its next report when that is cancelled', () => {
    const { world, model } = emptySweep();
    const trial = world.addTrial('s1', { lr: 1 });
    world.start(trial);
    world.yield(trial, 'resize', '2 of 8 workers; room for 6');
    model.apply(since(world, model));
    expect(model.trials.get(0)?.yielding).toMatchObject({ verdict: 'resize' });
    world.yield(trial, 'continue', '2 of 8 workers; the free slots for more are gone');
    model.apply(since(world, model));
    expect(model.trials.get(0)?.yielding).toBeUndefined();
  });

  it('forgets what a trial waited for when an executor comes', () => {
    const world = smallWorld();
    world.addTrial('s1', { lr: 1 }).waiting_reason = 'needs 8 GPUs; 6 are free on box';
    const model = snapshot(world, 's1');
    expect(model.trials.get(11)?.waiting_reason).toContain('8 GPUs');
    const [joined] = [{ kind: 'executor_changed', seq: world.seq + 1 } as AttuneEvent];
    model.apply([joined]);
    expect(model.trials.get(11)?.waiting_reason).toBe('');
  });

  it('says until when a failed trial waits', () => {
    const { world, model } = emptySweep();
    const trial = world.addTrial('s1', { lr: 1 });
    const [changed] = since(world, model).slice(-1);
    const requeued = {
      ...changed,
      seq: world.seq + 1,
      kind: 'trial_changed',
      state: 'pending',
      reason: 'rank 1 failed',
      not_before: '2026-11-21T10:05:00.000000Z',
    } as AttuneEvent;
    model.apply([...since(world, model), requeued]);
    expect(model.trials.get(trial.number)?.waiting_reason).toMatch(/^waits until 2026-11-2\d /);
  });
});

import { describe, expect, it } from 'vitest';

import type { Decision } from '../../../web/src/api/contract';
import {
  attemptOutcome,
  beginning,
  decisionSentence,
  originSentence,
  sentence,
  splitFailure,
  trialSentence,
} from '../../../web/src/model/reason';
import { trialStates } from '../../../web/src/model/states';
import { confirmation, countsSummary } from '../../../web/src/model/summary';
import { smallWorld } from '../mock/scenarios';
import { expectGolden } from './support/golden';

const accuracy = { name: 'accuracy', mode: 'max' } as const;

describe('what an attempt goes on as', () => {
  const decided = (attempt: number, verdict: Decision['verdict'], rule = 'asha'): Decision => ({
    time: '',
    attempt,
    step: 3,
    verdict,
    reason: '',
    rule,
    rung: 0,
    value: null,
    cutoff: null,
    rank: 0,
    peers: 0,
    policy: 0,
  });
  const after = (outcome: 'paused' | 'failed', ...decisions: Decision[]): string =>
    beginning({ number: 1, outcome }, { decisions });

  it('is told by the last verdict before it', () => {
    expect(beginning(undefined, { decisions: [] })).toBe('');
    expect(after('paused', decided(1, 'pause'), decided(1, 'promote'))).toBe('promoted');
    expect(after('paused', decided(1, 'exploit', 'pbt'))).toBe('clone');
    expect(after('paused', decided(1, 'pause', 'executor_drained'))).toBe('resumed');
    expect(after('paused', decided(1, 'resize', 'resize'))).toBe('resized');
    expect(after('paused', decided(1, 'continue'))).toBe('resumed');
    expect(after('failed', decided(1, 'continue'))).toBe('again');
  });
});

describe('why a trial is in its state', () => {
  it("is told in the server's words where it gave any", () => {
    const reason = 'rank 9 of 11';
    expect(trialSentence({ state: 'stopped', reason, milestone: 3, step: 3 })).toBe(
      'Rank 9 of 11.',
    );
  });

  it('is a sentence for every state even without', () => {
    for (const state of trialStates) {
      expect(trialSentence({ state, reason: '', milestone: 9, step: 3 })).toMatch(/^[A-Z].*\.$/);
    }
  });

  it('says what it waits for', () => {
    const pending = {
      state: 'pending',
      milestone: 0,
      step: 0,
      waiting_reason: 'needs 8 GPUs',
    } as const;
    expect(trialSentence({ ...pending, reason: '' })).toBe('Needs 8 GPUs.');
    expect(trialSentence({ ...pending, reason: 'resumed' })).toBe('Resumed. Needs 8 GPUs.');
  });

  it('says what comes at its next report', () => {
    const running = { state: 'running', reason: '', milestone: 9, step: 3 } as const;
    const leaves = { verdict: 'pause', reason: 'saved and left: its sweep was paused' } as const;
    const ends = { verdict: 'stop', reason: 'stopped: max_trial_time of 2h is over' } as const;
    const grows = { verdict: 'resize', reason: '2 of 8 workers; room for 6' } as const;
    expectGolden(
      'web/yielding',
      ...[leaves, ends, grows].map((yielding) => trialSentence({ ...running, yielding })),
    );
  });

  it('says when the next decision comes', () => {
    const running = { state: 'running', reason: '', step: 3 } as const;
    expect(trialSentence({ ...running, milestone: 9 })).toContain('step 9');
    expect(trialSentence({ ...running, milestone: 3 })).toBe('Training.');
  });
});

describe('a decision', () => {
  const decision: Decision = {
    time: '2026-11-21T10:00:00.000000Z',
    attempt: 1,
    step: 3,
    verdict: 'stop',
    reason: '',
    rule: 'asha',
    rung: 3,
    value: 0.412,
    cutoff: 0.781,
    rank: 9,
    peers: 11,
    policy: 0,
  };

  it('is put into words from its numbers', () => {
    expectGolden('web/decision', decisionSentence(decision, accuracy));
  });

  it('leaves out what it does not know', () => {
    const bare = {
      ...decision,
      rung: 0,
      value: null,
      cutoff: null,
      rank: 0,
      peers: 0,
    };
    expect(decisionSentence(bare, accuracy)).toMatch(/step 3\.$/);
    expect(decisionSentence({ ...decision, value: 'nan' }, accuracy)).toContain('accuracy NaN');
  });
});

describe('a failure', () => {
  it('is a sentence and the last lines of a log', () => {
    expect(splitFailure('rank 1: SIGKILL\nepoch 1\nKilled\n')).toEqual({
      sentence: 'Rank 1: SIGKILL.',
      log: 'epoch 1\nKilled',
    });
    expect(splitFailure('no program')).toEqual({
      sentence: 'No program.',
      log: '',
    });
  });

  it('of an attempt has a word', () => {
    expect(attemptOutcome({ state: 'assigned', outcome: '' })).toBe('starting');
    expect(attemptOutcome({ state: 'running', outcome: '' })).toBe('running');
    expect(attemptOutcome({ state: 'ended', outcome: 'lost' })).toContain('lost');
  });
});

describe('why a trial has its configuration', () => {
  const rationale = (text: string) => ({ rule: '', from: [], results: 0, score: null, text });

  it("names who proposed it, and tells in the server's words why", () => {
    expect(originSentence({ origin: 'tpe', rationale: rationale('near trial 2') })).toBe(
      'Proposed by tpe: near trial 2.',
    );
    expect(originSentence({ origin: 'tpe', rationale: null })).toBe('Proposed by tpe.');
  });

  it('is no proposal where a person asked for it', () => {
    expect(originSentence({ origin: 'enqueued', rationale: rationale('by ada') })).toBe('By ada.');
    expect(originSentence({ origin: 'initial_points', rationale: null })).toBe('Initial points.');
  });
});

describe('sentences', () => {
  it('begin with a capital and end once', () => {
    expect(sentence('reached step 9')).toBe('Reached step 9.');
    expect(sentence('really?')).toBe('Really?');
    expect(sentence('  ')).toBe('');
  });

  it('count only the states that there are', () => {
    const { trials } = smallWorld().sweep('s1');
    expect(countsSummary(trials)).toBe('2 running, 6 completed, 2 stopped, 1 failed');
  });

  it('tell before a kill how many running trials it ends', () => {
    const sweep = smallWorld().sweep('s1');
    const idle = {
      ...sweep,
      trials: { ...sweep.trials, running: 0, paused: 1 },
    };
    expectGolden(
      'web/confirmations',
      confirmation('kill', sweep),
      confirmation('stop', sweep),
      confirmation('stop', idle),
    );
  });
});

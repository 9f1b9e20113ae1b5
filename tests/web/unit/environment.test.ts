import { describe, expect, it } from 'vitest';

import type { EnvironmentRecord } from '../../../web/src/api/contract';
import {
  environmentFacts,
  environmentGroups,
  environmentLine,
  requirements,
} from '../../../web/src/model/environment';

const full: EnvironmentRecord = {
  attune: '0.1.0',
  python: {
    executable: '/usr/bin/python3',
    version: '3.11.7',
    packages: { numpy: '2.1.0', torch: '2.2.0' },
  },
  git: { commit: '0f3a1b2c4d5e6f70', dirty: true },
  gpu: { driver: '535.104.05', models: ['NVIDIA H200', 'NVIDIA A100', 'NVIDIA H200'] },
  cpu: 'EPYC',
};

describe('the environment of an attempt', () => {
  it('has a line with the versions that people compare first', () => {
    expect(environmentLine(full)).toBe(
      'commit 0f3a1b2c, changed · Python 3.11.7 · torch 2.2.0 · 2 NVIDIA H200, NVIDIA A100 · driver 535.104.05',
    );
    expect(environmentLine({ git: { commit: '0f3a', dirty: false } })).toBe('commit 0f3a');
    expect(environmentLine({ attune: '0.1.0' })).toBe('');
  });

  it('lists only members that are known', () => {
    expect(environmentFacts({ attune: '0.1.0', cpu: 'EPYC', gpu: { models: [] } })).toEqual([
      ['Attune', '0.1.0'],
      ['CPU', 'EPYC'],
    ]);
    expect(environmentFacts(full).map(([name]) => name)).toContain('GPU driver');
    expect(
      environmentFacts({
        container: { image: 'pytorch:2', engine: 'docker', id: 'ab', digest: 'sha256:cd' },
      }),
    ).toEqual([['container', 'pytorch:2, sha256:cd']]);
  });

  it('lists packages as requirements', () => {
    expect(requirements(full)).toEqual(['numpy==2.1.0', 'torch==2.2.0']);
    expect(requirements({})).toEqual([]);
  });

  it('puts executors with the same record together', () => {
    const recorded = '2026-11-21T10:00:00.000000Z';
    const groups = environmentGroups([
      { executor: 'a', recorded, record: full },
      { executor: 'b', recorded, record: {} },
      { executor: 'c', recorded, record: { ...full } },
    ]);
    expect(groups.map(({ executors }) => executors)).toEqual([['a', 'c'], ['b']]);
  });
});

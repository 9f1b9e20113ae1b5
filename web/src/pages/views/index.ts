import type { FunctionComponent } from 'preact';

import type { Sweep } from '../../api/contract';
import { onDemand } from '../../ui/on_demand';
import type { ViewProps } from './view';

export type MoreView =
  | 'slices'
  | 'contour'
  | 'distribution'
  | 'fronts'
  | 'hypervolume'
  | 'lineage'
  | 'failures'
  | 'activity';

interface Listed {
  label: string;
  /** Whether the view shows something of this sweep. */
  suits(sweep: Sweep): boolean;
  Shown: FunctionComponent<ViewProps>;
}

/** Views whose code the browser reads when they are opened. */
export const moreViews: Record<MoreView, Listed> = {
  slices: {
    label: 'Slices',
    suits: () => true,
    Shown: onDemand('the slices', async () => (await import('./response')).Slices),
  },
  contour: {
    label: 'Contour',
    suits: () => true,
    Shown: onDemand('the contour', async () => (await import('./response')).Contour),
  },
  distribution: {
    label: 'Distribution',
    suits: () => true,
    Shown: onDemand('the distribution', async () => (await import('./distribution')).Distribution),
  },
  fronts: {
    label: 'Fronts',
    suits: ({ metrics }) => metrics.length > 2,
    Shown: onDemand('the fronts', async () => (await import('./fronts')).Fronts),
  },
  hypervolume: {
    label: 'Hypervolume',
    suits: ({ metrics }) => metrics.length === 2 || metrics.length === 3,
    Shown: onDemand('the hypervolume', async () => (await import('./hypervolume')).Hypervolume),
  },
  lineage: {
    label: 'Lineage',
    suits: () => true,
    Shown: onDemand('the lineage', async () => (await import('./lineage')).Lineage),
  },
  failures: {
    label: 'Failures',
    suits: () => true,
    Shown: onDemand('the failures', async () => (await import('./failures')).FailuresView),
  },
  activity: {
    label: 'Activity',
    suits: () => true,
    Shown: onDemand('the activity', async () => (await import('./activity')).ActivityView),
  },
};

export function isMoreView(name: string | null): name is MoreView {
  return name !== null && Object.hasOwn(moreViews, name);
}

export const FailuresCard = onDemand<{ sweep: Sweep; attempts: number }>(
  'failures',
  async () => (await import('./failures')).FailuresCard,
);
export const FirstCause = onDemand<{ sweep: Sweep }>(
  'the first cause',
  async () => (await import('./failures')).FirstCause,
);

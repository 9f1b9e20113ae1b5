import type { JSX } from 'preact';

import { api } from '../../api/client';
import type { UserAction } from '../../api/contract';
import { actionText } from '../../model/activity';
import { formatCount } from '../../model/numbers';
import { trialUrl } from '../../router';
import { DataTable } from '../../ui/data_table';
import { When } from '../../ui/parts';
import { useAnswer } from '../use_answer';
import type { ViewProps } from './view';

const mostActions = 1000;

/** The actions of users on a sweep and its trials, newest first. */
export function ActivityView({ model, version, views }: ViewProps): JSX.Element {
  const { id } = model.sweep;
  const { answer } = useAnswer((signal) => api.activity(id, mostActions, signal), {
    about: [id],
    changes: [version],
    leastMs: 2000,
  });
  return (
    <div class="chart" data-testid="activity">
      <div class="chart-head">
        {views}
        <h2>activity of users</h2>
      </div>
      {!answer && <p class="muted">Reading the activity…</p>}
      {answer && (
        <div class="table-scroll" tabIndex={0} role="region" aria-label="Activity">
          <DataTable
            stacks
            plainRows
            columns={[
              { label: 'time', cell: ({ time }: UserAction) => <When time={time} /> },
              { label: 'who', cell: ({ actor }) => actor },
              { label: 'action', cell: (action) => actionText(action) },
              {
                label: 'trial',
                cell: ({ trial }) => trial !== null && <a href={trialUrl(id, trial)}>{trial}</a>,
              },
              { label: 'detail', class: 'wrap', cell: ({ detail }) => detail },
            ]}
            rows={answer.actions}
            rowKey={({ seq }) => seq}
          />
        </div>
      )}
      {answer?.next_page_token && (
        <p class="muted none">These are the newest {formatCount(mostActions)} actions.</p>
      )}
    </div>
  );
}

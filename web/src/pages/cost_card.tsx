import type { JSX } from 'preact';

import { api } from '../api/client';
import type { Sweep, SweepCost } from '../api/contract';
import { costParts, costSentence, formatHours, formatMoney, hoursUnit } from '../model/cost';
import { isLive } from '../model/states';
import { useAnswer } from './use_answer';

// The server adds up all attempts each time. The hours of running attempts grow without events.
const refreshMs = 5000;
const renewMs = 30_000;

/** The hours that the sweep has used, wasted and saved, and their price. */
export function CostCard({ sweep }: { sweep: Sweep }): JSX.Element | null {
  const { answer: cost } = useAnswer((signal) => api.cost(sweep.id, signal), {
    about: [sweep.id],
    changes: [JSON.stringify(sweep.trials)],
    leastMs: refreshMs,
    everyMs: isLive(sweep.state) ? renewMs : undefined,
  });
  if (!cost || cost.attempts === 0) return null;
  const { price } = cost;
  return (
    <section class="panel card" aria-labelledby="cost-title" data-testid="cost">
      <h2 id="cost-title">Cost</h2>
      <p class="headline">
        <span class="headline-value">{formatHours(cost.used_hours)}</span>
        <span class="muted">
          {hoursUnit(cost)}
          {price && ` · ${formatMoney(price.used, price.currency)}`}
        </span>
      </p>
      <CostBars cost={cost} />
      <p class="muted small">
        {costSentence(cost)}
        {cost.saved_hours === null && ' Saved hours are unknown without max_step.'}
      </p>
    </section>
  );
}

function CostBars({ cost }: { cost: SweepCost }): JSX.Element {
  const parts = costParts(cost);
  const most = Math.max(...parts.map(({ hours }) => hours)) || 1;
  return (
    <table class="rungs">
      <caption class="visually-hidden">Cost in {hoursUnit(cost)}</caption>
      <tbody>
        {parts.map(({ name, hours, money, meaning }) => (
          <tr key={name} title={meaning}>
            <th scope="row">{name}</th>
            <td>
              <span class={`rung-bar cost-${name}`} style={{ width: `${(hours / most) * 100}%` }} />
              {money && name !== 'used' && <span class="muted small">{money}</span>}
            </td>
            <td class="number">
              {name === 'saved' && hours > 0 && (
                <>
                  <span aria-hidden="true">≈</span>
                  <span class="visually-hidden">about </span>
                </>
              )}
              {formatHours(hours)}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

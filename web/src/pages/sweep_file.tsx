import type { JSX } from 'preact';

import type { Parameter, Sweep } from '../api/types';
import { formatConfig } from '../model/numbers';
import { CopyButton } from '../ui/parts';

/** The sweep file as it was sent, and the space it means. */
export function SweepFile({ sweep }: { sweep: Sweep }): JSX.Element {
  return (
    <div class="file-page">
      <section class="panel card" aria-labelledby="file-title">
        <div class="card-head">
          <h2 id="file-title">Sweep file</h2>
          <CopyButton text={sweep.file ?? ''} what="sweep file" />
        </div>
        <pre class="code" tabIndex={0}>
          {sweep.file ?? ''}
        </pre>
      </section>
      <section class="panel card" aria-labelledby="space-title">
        <h2 id="space-title">Search space</h2>
        <table class="data">
          <thead>
            <tr>
              <th scope="col">parameter</th>
              <th scope="col">type</th>
              <th scope="col">values</th>
            </tr>
          </thead>
          <tbody>
            {(sweep.parameters ?? []).map((parameter) => (
              <tr key={parameter.name}>
                <th scope="row">{parameter.name}</th>
                <td class="muted">{parameter.type}</td>
                <td>{domain(parameter)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </section>
    </div>
  );
}

/** "0.001 … 0.5, log", "8 … 64 by 8", "sgd, adamw", "128". */
export function domain(parameter: Parameter): string {
  if (parameter.value !== undefined) return formatConfig(parameter.value);
  if (parameter.values) return parameter.values.map((value) => formatConfig(value)).join(', ');
  if (parameter.min === undefined || parameter.max === undefined) return '';
  const by = parameter.step !== undefined ? ` by ${formatConfig(parameter.step)}` : '';
  const scale = parameter.scale === 'log' ? ', log' : '';
  return `${formatConfig(parameter.min)} … ${formatConfig(parameter.max)}${by}${scale}`;
}

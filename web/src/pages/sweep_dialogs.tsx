import type { JSX } from 'preact';
import { useState } from 'preact/hooks';

import type { Config, ConfigValue, Parameter, Sweep, SweepDetail } from '../api/contract';
import { formatConfig } from '../model/numbers';
import { isLive } from '../model/states';
import {
  extension,
  typedConfig,
  typedLimits,
  typedValue,
  valuesText,
  type Extension,
} from '../model/steering';
import { Dialog, Field } from '../ui/dialog';

/** Asks for new limits; unchanged fields keep their limits. */
export function ExtendDialog({
  sweep,
  onYes,
  onClose,
}: {
  sweep: Sweep;
  onYes(limits: Extension): Promise<string>;
  onClose(): void;
}): JSX.Element {
  // The limits when the dialog opened: a field must not change while the user types.
  const [before] = useState(() => typedLimits(sweep));
  return (
    <Dialog
      title={`Extend ${sweep.name || sweep.id}`}
      action="Extend"
      onYes={(typed) => onYes(extension(before, typed))}
      onClose={onClose}
    >
      <Field label="Trials" hint="in total">
        <input name="max_trials" type="number" min={0} defaultValue={before.max_trials} />
      </Field>
      {sweep.max_step > 0 && (
        <Field label="Last step" hint="of a trial; it can only grow">
          <input
            name="max_step"
            type="number"
            min={before.max_step}
            defaultValue={before.max_step}
          />
        </Field>
      )}
      <Field label="Time" hint="such as 90m, 2h, 1d">
        <input name="max_time" type="text" autocomplete="off" defaultValue={before.max_time} />
      </Field>
      {!sweep.external && (
        <Field label="GPU-hours" hint="in total">
          <input
            name="max_gpu_hours"
            type="number"
            min={0}
            step="any"
            defaultValue={before.max_gpu_hours}
          />
        </Field>
      )}
      <p class="muted dialog-note">
        0 is no limit.{!isLive(sweep.state) && ' The sweep has ended; it will run again.'}
      </p>
    </Dialog>
  );
}

/** The configuration that the fields of a dialog start with. */
export interface EnqueueStart {
  config: Config;
  /** Whose values they are: "trial 7"; empty without values. */
  source: string;
}

/** Asks for a configuration. */
export function EnqueueDialog({
  sweep,
  start: { config, source },
  onYes,
  onClose,
}: {
  sweep: SweepDetail;
  start: EnqueueStart;
  onYes(config: Config): Promise<string>;
  onClose(): void;
}): JSX.Element {
  const searched = sweep.parameters.filter((parameter) => parameter.type !== 'constant');
  return (
    <Dialog
      title="Enqueue a configuration"
      action="Enqueue"
      onYes={(typed) => onYes(typedConfig(searched, typed))}
      onClose={onClose}
    >
      <p class="muted">
        It starts before new proposals.
        {source && ` The values are those of ${source}.`} Leave parameters empty that are not active
        with the others.
      </p>
      {searched.map((parameter) => (
        <ParameterField
          key={parameter.name}
          parameter={parameter}
          value={typedValue(parameter, config[parameter.name])}
        />
      ))}
    </Dialog>
  );
}

function ParameterField({
  parameter,
  value,
}: {
  parameter: Parameter;
  value: string;
}): JSX.Element {
  const { name, values, type, min, max, step } = parameter;
  const number = (bound: ConfigValue | undefined): number | undefined =>
    bound === undefined ? undefined : Number(bound);
  if (values) {
    return (
      <Field label={name} hint="">
        <select name={name}>
          <option value="" />
          {values.map((each, place) => (
            <option key={place} value={place} selected={value === String(place)}>
              {formatConfig(each)}
            </option>
          ))}
        </select>
      </Field>
    );
  }
  return (
    <Field label={name} hint={valuesText(parameter)}>
      <input
        name={name}
        type="number"
        min={number(min)}
        max={number(max)}
        step={type === 'int' ? number(step) : 'any'}
        defaultValue={value}
      />
    </Field>
  );
}

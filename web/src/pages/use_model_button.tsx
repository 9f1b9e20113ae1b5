import type { JSX } from 'preact';
import { useState } from 'preact/hooks';

import { hasServer } from '../api/client';
import { onDemand } from '../ui/on_demand';

interface Props {
  sweep: string;
  trial: number;
  /** The path of the checkpoint to begin with; by default the newest. */
  path?: string;
}

const UseModel = onDemand<Props>(
  'the checkpoint',
  async () => (await import('./use_model')).UseModel,
);

/** Opens a panel that says where the files of a trial's model are, and how to load them. */
export function UseModelButton(props: Props): JSX.Element | null {
  const [open, setOpen] = useState(false);
  if (!hasServer()) return null;
  return (
    <>
      <button type="button" aria-expanded={open} onClick={() => setOpen(!open)}>
        Use this model
      </button>
      {open && <UseModel {...props} />}
    </>
  );
}

import type { JSX } from 'preact';
import { useState } from 'preact/hooks';

import { explain } from '../live/session';
import { sentence } from '../model/reason';

type Work = () => Promise<{ effect: string }>;

export interface Steering {
  /** The result of the user's last action here; screen readers announce it. */
  outcome: JSX.Element | null;
  /** For a button: shows a refusal as the outcome. */
  press(work: Work): Promise<void>;
  /** For a dialog: resolves to the refusal, which the dialog shows, or to '' after success. */
  answer(work: Work): Promise<string>;
}

export function useSteering(): Steering {
  const [said, setSaid] = useState<{ text: string; bad: boolean }>();
  const answer = async (work: Work): Promise<string> => {
    setSaid(undefined);
    try {
      setSaid({ text: sentence((await work()).effect), bad: false });
      return '';
    } catch (error) {
      return explain(error)?.message ?? '';
    }
  };
  const press = async (work: Work): Promise<void> => {
    const refused = await answer(work);
    if (refused) setSaid({ text: refused, bad: true });
  };
  const outcome = said ? (
    <div class={`notice outcome ${said.bad ? 'notice-bad' : 'notice-done'}`}>
      <span role={said.bad ? 'alert' : 'status'}>{said.text}</span>
      <button type="button" class="quiet" onClick={() => setSaid(undefined)}>
        Dismiss
      </button>
    </div>
  ) : null;
  return { outcome, press, answer };
}

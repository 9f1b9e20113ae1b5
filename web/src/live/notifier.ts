import { effect, signal } from '@preact/signals';

import { api } from '../api/client';
import type { Sweep } from '../api/contract';
import { noticesBetween, type Notice } from '../model/notices';
import { navigate, sweepUrl } from '../router';
import { readStored, writeStored } from '../stored';
import { authorised, explain } from './session';

const key = 'attune-notifications';
// A hidden tab has no stream of events, so the newest sweeps are read again and again.
const pollMs = 30_000;

/** Whether the user wants notifications of the browser. */
export const notifying = signal(false);

export function canNotify(): boolean {
  return 'Notification' in window && Notification.permission !== 'denied';
}

/** Turns notifications on, after the browser has asked the user, or off. */
export async function toggleNotifying(): Promise<void> {
  if (notifying.value) {
    notifying.value = false;
  } else if (canNotify()) {
    notifying.value = (await Notification.requestPermission()) === 'granted';
  }
  writeStored(key, notifying.value ? 'on' : undefined);
}

export function startNotifier(): void {
  const allowed = 'Notification' in window && Notification.permission === 'granted';
  notifying.value = allowed && readStored(key) === 'on';
  effect(() => {
    if (!notifying.value || !authorised.value) return undefined;
    let known: Sweep[] | undefined;
    const poll = async (): Promise<void> => {
      try {
        const sweeps = await api.newestSweeps();
        if (known) noticesBetween(known, sweeps).forEach(show);
        known = sweeps;
      } catch (error) {
        explain(error);
      }
    };
    void poll();
    const timer = setInterval(() => void poll(), pollMs);
    return () => clearInterval(timer);
  });
}

function show({ sweep, title, body }: Notice): void {
  const shown = new Notification(title, { body, tag: `attune-${sweep}` });
  shown.onclick = () => {
    window.focus();
    navigate(sweepUrl(sweep));
    shown.close();
  };
}

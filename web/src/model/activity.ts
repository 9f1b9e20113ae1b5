import type { UserAction } from '../api/contract';

const texts: Record<UserAction['action'], string> = {
  create: 'created the sweep',
  pause: 'paused the sweep',
  resume: 'resumed the sweep',
  edit: 'edited the sweep',
  reopen: 'opened the sweep again',
  stop: 'stopped the sweep',
  kill: 'killed the sweep',
  annotate: 'changed the note or the tags of the sweep',
  delete: 'deleted the sweep, with a delay',
  undelete: 'undid the deletion of the sweep',
  enqueue: 'enqueued a trial',
  retry: 'retried a trial',
  continue: 'continued a trial',
  pin: 'pinned a checkpoint',
  unpin: 'unpinned a checkpoint',
  drop: 'deleted a checkpoint',
};

/** The action of a user in words. */
export function actionText({ action, trial }: UserAction): string {
  if (trial !== null && action === 'kill') return 'killed a trial';
  if (trial !== null && action === 'annotate') return 'changed the note or the tags of a trial';
  return texts[action];
}

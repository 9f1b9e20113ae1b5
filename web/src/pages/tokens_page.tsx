import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';

import { api } from '../api/client';
import type { AccessToken, CreatedToken, NewToken } from '../api/contract';
import { mayChange, openStream, session } from '../live/session';
import { DataTable, type TableColumn } from '../ui/data_table';
import { Confirm, Dialog, Field } from '../ui/dialog';
import { CopyButton, Loading, Trouble } from '../ui/parts';
import { useSteering } from './steering';
import { useAnswer } from './use_answer';

const refreshMs = 250;
const daySeconds = 24 * 3600;

/** The tokens of people and executors: list, create, revoke. Only admins may see it. */
export function TokensPage(): JSX.Element {
  useEffect(() => openStream({ onEvents: () => {}, onResync: () => {}, onRefused: () => {} }), []);
  if (!session.value) return <Loading what="your token" />;
  if (mayChange.value) return <Tokens />;
  return (
    <div class="trouble">
      <h1>Only admins see tokens</h1>
      <p>
        You are logged in as {session.value.name}, with the role {session.value.role}.
      </p>
    </div>
  );
}

function Tokens(): JSX.Element {
  const tokens = useAnswer((signal) => api.tokens(signal), { about: [], leastMs: refreshMs });
  const [asked, setAsked] = useState<AccessToken | 'create'>();
  const [created, setCreated] = useState<CreatedToken>();
  const { outcome, answer } = useSteering();
  const create = async (token: NewToken): Promise<{ effect: string }> => {
    setCreated(await api.createToken(token));
    tokens.refresh();
    return { effect: `the token of ${token.name} works now` };
  };
  const revoke = async (name: string): Promise<{ effect: string }> => {
    const { effect } = await api.revokeToken(name);
    if (created?.name === name) setCreated(undefined);
    tokens.refresh();
    return { effect: `${name}: ${effect}` };
  };
  const list = tokens.answer;
  if (tokens.error) return <Trouble error={tokens.error} />;
  return (
    <>
      <div class="page-head">
        <h1>Tokens</h1>
        <div class="actions">
          <button type="button" onClick={() => setAsked('create')}>
            Create…
          </button>
        </div>
      </div>
      {outcome}
      {created && <Secret token={created} onDismiss={() => setCreated(undefined)} />}
      {!list && <Loading what="tokens" />}
      {list?.length === 0 && (
        <div class="empty">
          <h2>No tokens except the server's own</h2>
          <p>Create one for each person, so that the log shows who did what.</p>
        </div>
      )}
      {list && list.length > 0 && (
        <div class="panel table-scroll" tabIndex={0} role="region" aria-label="Tokens">
          <DataTable columns={tokenColumns(setAsked)} rows={list} rowKey={({ name }) => name} />
        </div>
      )}
      {asked === 'create' && (
        <CreateDialog
          onYes={(token) => answer(() => create(token))}
          onClose={() => setAsked(undefined)}
        />
      )}
      {asked && asked !== 'create' && (
        <Confirm
          title={`Revoke the token of ${asked.name}?`}
          text={revocation(asked)}
          action="Revoke"
          danger
          onYes={() => answer(() => revoke(asked.name))}
          onClose={() => setAsked(undefined)}
        />
      )}
    </>
  );
}

function revocation(token: AccessToken): string {
  if (token.name === session.value?.name) return 'This is your own token: you are logged out.';
  return token.role === 'executor'
    ? 'Its executors leave, and cannot join again with this token.'
    : 'Its requests are refused, and its browsers are logged out.';
}

function tokenColumns(onRevoke: (token: AccessToken) => void): TableColumn<AccessToken>[] {
  return [
    {
      label: 'name',
      cell: ({ name }) => (
        <>
          {name}
          {name === session.value?.name && <span class="muted"> (you)</span>}
        </>
      ),
    },
    { label: 'role', cell: ({ role }) => role },
    {
      label: 'expires',
      cell: ({ expires, expired }) => {
        if (expires === null) return <span class="muted">never</span>;
        return expired ? <span class="warn">expired</span> : new Date(expires).toLocaleString();
      },
    },
    {
      label: <span class="visually-hidden">actions</span>,
      cell: (token) => (
        <button
          type="button"
          class="quiet"
          aria-label={`Revoke the token of ${token.name}`}
          onClick={() => onRevoke(token)}
        >
          Revoke…
        </button>
      ),
    },
  ];
}

function Secret({ token, onDismiss }: { token: CreatedToken; onDismiss(): void }): JSX.Element {
  return (
    <div class="notice" data-testid="secret">
      <span>
        <b>Copy the token of {token.name} now.</b> It is shown only once.
      </span>
      <code>{token.secret}</code>
      <CopyButton text={token.secret} what={`token of ${token.name}`} />
      <button type="button" class="quiet" onClick={onDismiss}>
        Dismiss
      </button>
    </div>
  );
}

function CreateDialog({
  onYes,
  onClose,
}: {
  onYes(token: NewToken): Promise<string>;
  onClose(): void;
}): JSX.Element {
  const submit = (typed: Record<string, string>): Promise<string> =>
    onYes({
      name: typed.name ?? '',
      role: typed.role === 'admin' ? 'admin' : 'viewer',
      expires_in: Number(typed.days ?? 0) * daySeconds,
    });
  return (
    <Dialog title="Create a token" action="Create" onYes={submit} onClose={onClose}>
      <Field label="Name" hint="a to z, 0 to 9, - _ and .">
        <input name="name" required maxLength={64} autocomplete="off" />
      </Field>
      <Field label="Role" hint="viewers read everything and change nothing">
        <select name="role">
          <option value="viewer">viewer</option>
          <option value="admin">admin</option>
        </select>
      </Field>
      <Field label="Days" hint="until it stops working; 0: it does not expire">
        <input name="days" type="number" min={0} max={3650} value={90} />
      </Field>
    </Dialog>
  );
}

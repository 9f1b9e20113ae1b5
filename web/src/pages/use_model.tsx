import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';

import { ApiError, api, type CheckpointName } from '../api/client';
import type { CheckpointDetail, TrialCheckpoint } from '../api/contract';
import { downloadCheckpoint, mostDownloadedBytes, readManifest } from '../live/download';
import { explain } from '../live/session';
import { formatBytes } from '../model/numbers';
import { cppSnippet, getCommand, pythonSnippet } from '../model/use_model';
import { CopyButton, Loading, Pick } from '../ui/parts';
import { saveAs } from '../ui/export/save_as';

/** Where the files of a trial's checkpoints are, and how to load them. */
export function UseModel({
  sweep,
  trial,
  path,
}: {
  sweep: string;
  trial: number;
  path?: string;
}): JSX.Element {
  const [kept, setKept] = useState<TrialCheckpoint[]>();
  const [trouble, setTrouble] = useState('');
  const [key, setKey] = useState('');
  useEffect(() => {
    const abort = new AbortController();
    api.trial(sweep, trial, abort.signal).then(
      ({ checkpoints }) => setKept(checkpoints.filter(({ dropped }) => dropped === null)),
      (error: unknown) => setTrouble(explain(error)?.message ?? ''),
    );
    return () => abort.abort();
  }, [sweep, trial, path]);
  if (trouble) return <p class="failure">{trouble}</p>;
  if (!kept) return <Loading what="the checkpoints" />;
  const keyOf = ({ attempt, step }: TrialCheckpoint): string => `${attempt}-${step}`;
  const chosen =
    kept.find((each) => keyOf(each) === key) ??
    kept.find((each) => each.path === path) ??
    kept.at(-1);
  if (!chosen) return <p class="muted">No checkpoint is kept.</p>;
  const { attempt, step } = chosen;
  return (
    <div class="use-model" data-testid="use-model">
      {kept.length > 1 && (
        <Pick
          label="checkpoint"
          value={keyOf(chosen)}
          options={kept.map((each) => [keyOf(each), `step ${each.step}, attempt ${each.attempt}`])}
          onChange={setKey}
        />
      )}
      <OneModel key={keyOf(chosen)} name={{ sweep, trial, attempt, step }} />
    </div>
  );
}

function OneModel({ name }: { name: CheckpointName }): JSX.Element {
  const [detail, setDetail] = useState<CheckpointDetail>();
  const [files, setFiles] = useState<readonly string[]>([]);
  const [trouble, setTrouble] = useState('');
  useEffect(() => {
    const abort = new AbortController();
    const fail = (error: unknown): void => setTrouble(messageOf(error));
    api.checkpoint(name, abort.signal).then(setDetail, fail);
    readManifest(name, abort.signal).then((read) => setFiles(Object.keys(read.files)), fail);
    return () => abort.abort();
  }, []);
  if (!detail)
    return trouble ? <p class="failure">{trouble}</p> : <Loading what="the checkpoint" />;
  return (
    <>
      <dl class="use-facts">
        <dt>host</dt>
        <dd>
          {detail.executor}
          {detail.stored && (
            <span class="muted">
              , and a copy {detail.stored_url ? 'in object storage' : 'on the server'}
            </span>
          )}
        </dd>
        <dt>folder</dt>
        <dd class="path-line">
          <code title={`${detail.path}\n${detail.digest}`}>
            <bdi>{detail.path}</bdi>
          </code>
          <CopyButton text={detail.path} what="folder" />
        </dd>
        {detail.stored_url && (
          <>
            <dt>copy</dt>
            <dd class="path-line">
              <code title={detail.stored_url}>
                <bdi>{detail.stored_url}</bdi>
              </code>
              <CopyButton text={detail.stored_url} what="copy's address" />
            </dd>
          </>
        )}
        {files.length > 0 && (
          <>
            <dt>files</dt>
            <dd>{files.join(', ')}</dd>
          </>
        )}
      </dl>
      {trouble && <p class="failure small">{trouble}</p>}
      <Download name={name} bytes={detail.bytes} />
      <Snippet title="Command line" text={getCommand(name)} />
      <Snippet title="Python" text={pythonSnippet(name, files)} />
      <Snippet title="C++" text={cppSnippet(files)} />
    </>
  );
}

// A file that does not match its sum is an error of the page, not of the server.
function messageOf(error: unknown): string {
  if (error instanceof ApiError || error instanceof DOMException)
    return explain(error)?.message ?? '';
  return error instanceof Error ? error.message : String(error);
}

function Download({ name, bytes }: { name: CheckpointName; bytes: number }): JSX.Element {
  const [read, setRead] = useState<number>();
  const [trouble, setTrouble] = useState('');
  const [abort] = useState(() => new AbortController());
  useEffect(() => () => abort.abort(), []);
  if (bytes > mostDownloadedBytes)
    return (
      <p class="muted small">
        {formatBytes(bytes)} are too much for a download by the browser; use the command line.
      </p>
    );
  const folder = `${name.sweep}-${name.trial}-step-${name.step}`;
  const start = async (): Promise<void> => {
    setRead(0);
    setTrouble('');
    try {
      saveAs(await downloadCheckpoint(name, folder, abort.signal, setRead), `${folder}.tar`);
    } catch (error) {
      setTrouble(messageOf(error));
    }
    setRead(undefined);
  };
  return (
    <p>
      <button type="button" disabled={read !== undefined} onClick={() => void start()}>
        Download {folder}.tar
      </button>{' '}
      <span class="muted small" role="status">
        {read === undefined ? formatBytes(bytes) : `${formatBytes(read)} of ${formatBytes(bytes)}…`}
      </span>
      {trouble && <span class="failure small"> {trouble}</span>}
    </p>
  );
}

function Snippet({ title, text }: { title: ComponentChildren; text: string }): JSX.Element {
  return (
    <div class="snippet">
      <div class="snippet-head">
        <h3>{title}</h3>
        <CopyButton text={text} what={String(title)} />
      </div>
      <pre class="code" tabIndex={0}>
        {text}
      </pre>
    </div>
  );
}

import type { JSX } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';

import type { Fault } from '../../api/contract';
import { suggest, type Schema, type Suggestion } from '../../model/editor/sweep_keys';
import '../../styles/editor.css';

const leastLines = 24;
const mostSuggestions = 40;

/** A field for a sweep file, with numbers of lines, marks of faults, and keys that fit. */
export function YamlEditor({
  text,
  faults,
  onChange,
}: {
  text: string;
  faults: readonly Fault[];
  onChange(text: string): void;
}): JSX.Element {
  const field = useRef<HTMLTextAreaElement>(null);
  const list = useRef<HTMLUListElement>(null);
  const [cursor, setCursor] = useState(0);
  const schema = useSchema();
  const lines = text.split('\n').length;
  const faulty = new Set(faults.map((fault) => fault.line));
  const { from, options } = useMemo(
    () => (schema ? suggest(text, cursor, schema) : { from: cursor, options: [] }),
    [schema, text, cursor],
  );
  const follow = (): void => setCursor(field.current?.selectionStart ?? 0);
  const insert = ({ text: inserted }: Suggestion): void => {
    const space = inserted.endsWith(':') ? ' ' : '';
    onChange(text.slice(0, from) + inserted + space + text.slice(cursor));
    const next = from + inserted.length + space.length;
    // The field gets the new text after this event.
    setTimeout(() => {
      field.current?.focus();
      field.current?.setSelectionRange(next, next);
      follow();
    });
  };
  return (
    <>
      <div class="editor">
        <pre class="editor-lines" aria-hidden="true">
          {Array.from({ length: Math.max(lines, leastLines) }, (_, i) => (
            <span key={i} class={faulty.has(i + 1) ? 'editor-fault' : ''}>
              {i < lines ? i + 1 : ''}
              {'\n'}
            </span>
          ))}
        </pre>
        <textarea
          ref={field}
          aria-label="Sweep file"
          aria-describedby="editor-state"
          aria-invalid={faults.length > 0}
          spellcheck={false}
          autocomplete="off"
          autocapitalize="off"
          wrap="off"
          rows={Math.max(lines, leastLines)}
          value={text}
          onInput={(event) => {
            onChange(event.currentTarget.value);
            follow();
          }}
          onSelect={follow}
          onKeyDown={(event) => {
            if (event.key !== ' ' || !event.ctrlKey) return;
            event.preventDefault();
            list.current?.querySelector('button')?.focus();
          }}
        />
      </div>
      <ul class="editor-keys" ref={list} aria-label="Keys and values that fit here (Ctrl Space)">
        {options.slice(0, mostSuggestions).map((option) => (
          <li key={option.text}>
            <button
              type="button"
              class="quiet"
              title={option.description}
              onClick={() => insert(option)}
            >
              {option.text.replace(/:$/, '')}
            </button>
          </li>
        ))}
      </ul>
    </>
  );
}

/** The JSON schema of sweep files; undefined until it is read. */
function useSchema(): Schema | undefined {
  const [schema, setSchema] = useState<Schema>();
  useEffect(() => {
    void import('../../../../docs/schemas/sweep-v1.json').then((read) =>
      setSchema(read.default as Schema),
    );
  }, []);
  return schema;
}

/** The faults of a file, each a button that shows its line. */
export function FaultList({ faults }: { faults: readonly Fault[] }): JSX.Element {
  const show = ({ line, column }: Fault): void => {
    const field = document.querySelector<HTMLTextAreaElement>('.editor textarea');
    if (!field || line === 0) return;
    const before = field.value
      .split('\n')
      .slice(0, line - 1)
      .reduce((sum, each) => sum + each.length + 1, 0);
    const at = before + Math.max(0, column - 1);
    field.focus();
    field.setSelectionRange(at, at);
  };
  return (
    <ul class="editor-faults" role="alert">
      {faults.map((fault, i) => (
        <li key={i}>
          <button type="button" class="quiet" onClick={() => show(fault)}>
            {fault.line > 0 ? `line ${fault.line}` : 'the file'}
          </button>{' '}
          {[fault.pointer.slice(1).replaceAll('/', '.'), fault.message].filter(Boolean).join(': ')}
        </li>
      ))}
    </ul>
  );
}

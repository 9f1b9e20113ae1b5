import type { FunctionComponent, JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';

import { Loading } from './parts';

/** A component whose code the browser reads when it is first shown. `what` names it while it loads. */
export function onDemand<Props extends object>(
  what: string,
  load: () => Promise<FunctionComponent<Props>>,
): FunctionComponent<Props> {
  let loaded: FunctionComponent<Props> | undefined;
  return function OnDemand(props: Props): JSX.Element {
    const [state, setState] = useState<'reading' | 'read' | 'failed'>(loaded ? 'read' : 'reading');
    useEffect(() => {
      if (loaded) return;
      load().then(
        (component) => {
          loaded = component;
          setState('read');
        },
        () => setState('failed'),
      );
    }, []);
    if (state === 'failed') return <Outdated />;
    const Shown = loaded;
    return Shown ? <Shown {...props} /> : <Loading what={what} />;
  };
}

// The files of an earlier version of the page are gone once the server was updated.
function Outdated(): JSX.Element {
  return (
    <p class="notice notice-bad" role="alert">
      <span>This part of the page cannot be read. The server may have been updated.</span>
      <button type="button" onClick={() => location.reload()}>
        Reload
      </button>
    </p>
  );
}

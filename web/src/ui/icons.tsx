import type { JSX } from 'preact';

import type { TrialState } from '../api/contract';

/** One shape per state, so that no state depends on colour alone. */
const stateShapes: Record<TrialState, JSX.Element> = {
  pending: <circle cx="8" cy="8" r="5.5" stroke-dasharray="2.2 2.1" />,
  running: (
    <>
      <circle cx="8" cy="8" r="5.75" opacity=".35" />
      <path class="spin" d="M8 2.25A5.75 5.75 0 0 1 13.75 8" />
      <circle cx="8" cy="8" r="1.9" fill="currentColor" stroke="none" />
    </>
  ),
  paused: (
    <>
      <circle cx="8" cy="8" r="5.75" />
      <path d="M6.4 5.9v4.2M9.6 5.9v4.2" />
    </>
  ),
  completed: (
    <>
      <circle cx="8" cy="8" r="5.75" />
      <path d="m5.5 8.2 1.8 1.8 3.4-3.8" />
    </>
  ),
  stopped: (
    <>
      <path d="M5.6 2.4h4.8l3.2 3.2v4.8l-3.2 3.2H5.6l-3.2-3.2V5.6z" />
      <path d="M5.5 8h5" />
    </>
  ),
  failed: (
    <>
      <path d="M8 2.2 14.2 13.2H1.8z" />
      <path d="M8 6.5v3M8 11.2v.1" />
    </>
  ),
  killed: (
    <>
      <circle cx="8" cy="8" r="5.75" />
      <path d="m5.8 5.8 4.4 4.4m0-4.4-4.4 4.4" />
    </>
  ),
};

function Svg({ children, size = 16 }: { children: JSX.Element; size?: number }): JSX.Element {
  return (
    <svg
      class="icon"
      viewBox="0 0 16 16"
      width={size}
      height={size}
      fill="none"
      stroke="currentColor"
      stroke-width="1.5"
      stroke-linecap="round"
      stroke-linejoin="round"
      aria-hidden="true"
    >
      {children}
    </svg>
  );
}

export function StateIcon({ state }: { state: TrialState }): JSX.Element {
  return <Svg>{stateShapes[state]}</Svg>;
}

/** A state as icon, word and colour. */
export function StateLabel({ state, large }: { state: TrialState; large?: boolean }): JSX.Element {
  return (
    <span class={`state state-${state}${large ? ' state-large' : ''}`}>
      <StateIcon state={state} />
      {state}
    </span>
  );
}

const shapes = {
  copy: (
    <>
      <rect x="5.5" y="5.5" width="8" height="8" rx="1.5" />
      <path d="M10.5 5.5V4A1.5 1.5 0 0 0 9 2.5H4A1.5 1.5 0 0 0 2.5 4v5A1.5 1.5 0 0 0 4 10.5h1.5" />
    </>
  ),
  check: <path d="m3.5 8.5 3 3 6-7" />,
  clear: <path d="m4.5 4.5 7 7m0-7-7 7" />,
  search: (
    <>
      <circle cx="7" cy="7" r="4.2" />
      <path d="m10.3 10.3 3.2 3.2" />
    </>
  ),
  sun: (
    <>
      <circle cx="8" cy="8" r="2.8" />
      <path d="M8 1.5v1.2M8 13.3v1.2M1.5 8h1.2M13.3 8h1.2M3.4 3.4l.9.9M11.7 11.7l.9.9M12.6 3.4l-.9.9M4.3 11.7l-.9.9" />
    </>
  ),
  moon: <path d="M13.2 9.6A5.7 5.7 0 0 1 6.4 2.8a5.7 5.7 0 1 0 6.8 6.8z" />,
  system: (
    <>
      <circle cx="8" cy="8" r="5.7" />
      <path d="M8 2.3a5.7 5.7 0 0 1 0 11.4z" fill="currentColor" />
    </>
  ),
  table: <path d="M2.5 3.5h11v9h-11zM2.5 6.5h11M2.5 9.5h11M6.5 6.5v6" />,
  chart: <path d="M2.5 2.5v11h11M5 10c1.5-4 4-5 8-5.5" />,
  host: (
    <>
      <rect x="2.5" y="3" width="11" height="4" rx="1" />
      <rect x="2.5" y="9" width="11" height="4" rx="1" />
      <path d="M5 5h.1M5 11h.1" />
    </>
  ),
  warning: <path d="M8 2.5 14 13H2zM8 6.5v3M8 11.2v.1" />,
  bell: <path d="M4 11V7a4 4 0 0 1 8 0v4l1 1H3zM6.8 14h2.4" />,
  hourglass: (
    <path d="M4.5 2.5h7M4.5 13.5h7M5.5 2.5c0 3 2.5 3.5 2.5 5.5 0-2 2.5-2.5 2.5-5.5M5.5 13.5c0-3 2.5-3.5 2.5-5.5 0 2 2.5 2.5 2.5 5.5" />
  ),
};

export type IconName = keyof typeof shapes;

export function Icon({ name }: { name: IconName }): JSX.Element {
  return <Svg>{shapes[name]}</Svg>;
}

export function Logo(): JSX.Element {
  return (
    <svg class="logo" viewBox="0 0 32 32" width="22" height="22" aria-hidden="true">
      <rect class="logo-ground" width="32" height="32" rx="7" />
      <g fill="none" stroke="#fff" stroke-width="2.6" stroke-linecap="round">
        <path d="M6 24C9 18 12 17 14 16.8" opacity=".5" />
        <path d="M6 24c3-3 6-3.6 12-4" opacity=".5" />
        <path d="M6 24C9 11 16 8.5 26 8" />
      </g>
      <circle cx="26" cy="8" r="2.6" fill="#fff" />
    </svg>
  );
}

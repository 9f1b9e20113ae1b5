import type { JSX } from 'preact';
import { useState } from 'preact/hooks';

import { api } from '../api/client';
import { Help } from '../pages/help';
import { SweepPage } from '../pages/sweep_page';
import { TrialPage } from '../pages/trial_page';
import { navigate, parseRoute, place, sweepUrl } from '../router';
import { HelpButton } from '../ui/help_button';
import { Logo } from '../ui/icons';
import { useKeys } from '../ui/keys';
import { When } from '../ui/parts';
import { cycleTheme } from '../ui/theme';
import { ThemeButton } from '../ui/theme_button';

/** What a report says about itself. */
export interface About {
  sweep: string;
  /** When the server has made it. */
  time: string;
  /** The version of the server. */
  version: string;
}

/** The pages of one sweep and its trials, without a server. */
export function ReportApp({ about, licences }: { about: About; licences: string }): JSX.Element {
  const [help, setHelp] = useState(false);
  useKeys({
    '?': () => setHelp(true),
    t: cycleTheme,
    u: () => navigate(sweepUrl(about.sweep)),
  });
  return (
    <>
      <header class="top">
        <a class="brand" href={sweepUrl(about.sweep)}>
          <Logo /> Attune
        </a>
        <div class="top-right">
          <ThemeButton />
          <HelpButton onClick={() => setHelp(true)} />
        </div>
      </header>
      <main id="main">
        <p class="muted small report-note" data-testid="about">
          Report of sweep {about.sweep}, made <When time={about.time} /> by Attune {about.version}.
          Nothing in it changes.
        </p>
        <Page about={about} />
      </main>
      {help && <Help licences={<Licences text={licences} />} onClose={() => setHelp(false)} />}
    </>
  );
}

function Page({ about }: { about: About }): JSX.Element {
  const route = parseRoute(place.value.path);
  const { sweep } = about;
  if (route.page !== 'trial') return <SweepPage id={sweep} />;
  const { trial } = route;
  if (api.hasTrial(sweep, trial)) return <TrialPage key={trial} sweep={sweep} number={trial} />;
  return (
    <div class="trouble">
      <h2>The report does not contain the page of trial {trial}</h2>
      <p>A report has the pages of the best trials. The table has a row for each trial.</p>
      <p>
        <a href={`${sweepUrl(sweep)}?trial=${trial}`}>Its row</a>
      </p>
    </div>
  );
}

function Licences({ text }: { text: string }): JSX.Element {
  return (
    <details class="notices">
      <summary>Third-party licences</summary>
      <pre class="code">{text}</pre>
    </details>
  );
}

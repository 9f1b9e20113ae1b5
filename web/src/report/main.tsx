import { render } from 'preact';

import { answerFrom } from '../api/client';
import { startRouter } from '../router';
import '../styles/index.css';
import { startTheme } from '../ui/theme';
import { RecordedAnswers } from './recorded_answers';
import { ReportApp, type About } from './report_app';

async function showReport(): Promise<void> {
  const answers = RecordedAnswers.of(document);
  const about = (await (await answers.fetch('/report')).json()) as About;
  const licences = document.getElementById('licences')?.textContent ?? '';
  answerFrom(answers);
  startTheme();
  startRouter(`/sweeps/${about.sweep}`);
  const app = <ReportApp about={about} licences={licences} />;
  render(app, document.getElementById('app') as HTMLElement);
}

void showReport();

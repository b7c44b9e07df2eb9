// How far a group or a partition is behind in time, and how that goes on.
import {
  ageBeyondTimeLag,
  catchUp,
  catchUpBasis,
  duration,
  exact,
  type Forecast,
  keepsUp,
  perSecond,
  TIME_LAG_METHOD_TEXT,
  timeLag,
} from "../format"
import type { Status, TimeLag } from "../schema"
import { Fact } from "./common"

export function Behind({ lag }: { lag: Pick<TimeLag, "seconds_behind" | "seconds_behind_method"> }) {
  const { seconds_behind: seconds, seconds_behind_method: method } = lag
  return (
    <span title={TIME_LAG_METHOD_TEXT[method]} class={seconds ? "" : "mild"}>
      {timeLag(seconds, method)}
    </span>
  )
}

export function CatchesUp({ lag, status }: { lag: Forecast; status: Status }) {
  const isWaiting = !keepsUp(lag, status) && (lag.is_falling_behind || lag.catch_up_seconds)
  return (
    <span title={catchUpBasis(lag, status)} class={isWaiting ? "" : "mild"}>
      {catchUp(lag, status)}
    </span>
  )
}

/** The facts about a time lag; those about lost data only where there is a danger. */
export function TimeLagFacts({ lag, status }: { lag: TimeLag; status: Status }) {
  const { rates, retention_left_seconds: left, lost_messages: lost } = lag
  const age = ageBeyondTimeLag(lag)
  return (
    <>
      <Fact label="Time lag">
        <b>
          <Behind lag={lag} />
        </b>
      </Fact>
      {age !== null && (
        <Fact label="Oldest unread">
          <span title="Age of the first unread message by its own timestamp: it was made long before it was written here">
            {duration(age * 1000)} old
          </span>
        </Fact>
      )}
      <Fact label="Catches up">
        <CatchesUp lag={lag} status={status} />
      </Fact>
      {left !== null && (
        <Fact label="Loses data in">
          <span class="trouble" title="Until unread messages are deleted, at present rates">
            {duration(left * 1000)}
          </span>
        </Fact>
      )}
      {lost > 0 && (
        <Fact label="Lost messages">
          <span class="trouble" title="Deleted before they were read">
            {exact(lost)}
          </span>
        </Fact>
      )}
      <Fact label="Produced">
        <Rate lastMinute={rates.produced_1m} lastTen={rates.produced_10m} />
      </Fact>
      <Fact label="Consumed">
        <Rate lastMinute={rates.consumed_1m} lastTen={rates.consumed_10m} />
      </Fact>
    </>
  )
}

function Rate({ lastMinute, lastTen }: { lastMinute: number | null; lastTen: number | null }) {
  return (
    <span title={`In the last minute; in the last ten minutes ${perSecond(lastTen)}`}>{perSecond(lastMinute)}</span>
  )
}

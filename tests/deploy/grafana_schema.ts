// What Grafana's own types say of a dashboard, of its panels and of its requests; the JSON Schema of Parts is made from it.
import type { DataQuery } from "../../dashboard/node_modules/@grafana/schema"
import type * as bargauge from "../../dashboard/node_modules/@grafana/schema/dist/esm/raw/composable/bargauge/panelcfg/x/BarGaugePanelCfg_types.gen"
import type * as elasticsearch from "../../dashboard/node_modules/@grafana/schema/dist/esm/raw/composable/elasticsearch/dataquery/x/ElasticsearchDataQuery_types.gen"
import type * as stat from "../../dashboard/node_modules/@grafana/schema/dist/esm/raw/composable/stat/panelcfg/x/StatPanelCfg_types.gen"
import type * as statetimeline from "../../dashboard/node_modules/@grafana/schema/dist/esm/raw/composable/statetimeline/panelcfg/x/StateTimelinePanelCfg_types.gen"
import type * as table from "../../dashboard/node_modules/@grafana/schema/dist/esm/raw/composable/table/panelcfg/x/TablePanelCfg_types.gen"
import type * as timeseries from "../../dashboard/node_modules/@grafana/schema/dist/esm/raw/composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen"
import type * as raw from "../../dashboard/node_modules/@grafana/schema/dist/esm/raw/dashboard/x/dashboard_types.gen"

// Grafana has these for intervals only, and its types for none; its SDK writes them into every variable.
interface Variable extends raw.VariableModel {
  auto?: boolean
  auto_count?: number
  auto_min?: string
}

interface Dashboard extends Omit<raw.Dashboard, "templating"> {
  templating: { list: Variable[] }
}

interface FieldConfig<Custom> extends Omit<raw.FieldConfig, "custom"> {
  custom?: Partial<Custom>
}

// Partial, for Grafana puts its defaults in for what is left out.
interface Shown<Options, Custom> {
  options: Partial<Options>
  defaults: FieldConfig<Custom>
  overrides: FieldConfig<Custom>[]
}

interface Nothing {}

// The package has no types for requests of these stores beyond what all have.
type Query = DataQuery & Record<string, unknown>

export interface Parts {
  dashboard: Dashboard
  panels: {
    bargauge?: Record<string, Shown<bargauge.Options, Nothing>>
    stat?: Record<string, Shown<stat.Options, Nothing>>
    "state-timeline"?: Record<string, Shown<statetimeline.Options, statetimeline.FieldConfig>>
    table?: Record<string, Shown<table.Options, table.FieldConfig>>
    timeseries?: Record<string, Shown<timeseries.Options, timeseries.FieldConfig>>
  }
  targets: {
    __expr__?: Record<string, Query>
    elasticsearch?: Record<string, elasticsearch.ElasticsearchDataQuery>
    influxdb?: Record<string, Query>
    prometheus?: Record<string, Query>
  }
}

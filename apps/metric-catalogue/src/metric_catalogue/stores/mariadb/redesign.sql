-- Copies a catalogue from schema.sql, in the database `old`, to redesigned.sql, in the current one:
--     sed 's/`old`/`catalogue`/' redesign.sql | mariadb redesigned

INSERT INTO dimensions (id, name) SELECT id, name FROM `old`.dimensions;

INSERT INTO metrics (id, name, created_at, created_by)
SELECT id, name, created_at, created_by FROM `old`.metrics;

INSERT INTO metric_versions (
    metric_id, version, updated_at, updated_by, deprecated_at, deprecated_by, deprecated_reason,
    aggregation_style, aggregation_param, value_type, chained_metric_id, chain_cutoff_date,
    hybrid_formula
)
SELECT
    metric_id, version, updated_at, updated_by, deprecated_at, deprecated_by, deprecated_reason,
    aggregation_style, aggregation_param, value_type, chained_metric_id, chain_cutoff_date,
    hybrid_formula
FROM `old`.metric_versions;

-- The rows have the metric in place of its group. The group of all hybrid metrics has no dimensions.
INSERT INTO related_dimensions (metric_id, dimension_id)
SELECT m.id, g.dimension_id
FROM `old`.metrics m JOIN `old`.dimensions_metric_groups g ON g.metric_group_id = m.metric_group_id;

INSERT INTO metric_relationships (consumer_metric_id, consumed_metric_id)
SELECT consumer_metric_id, consumed_metric_id FROM `old`.metric_relationships;

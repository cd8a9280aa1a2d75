/* Brokers and configurations in order; the racks of a list of replicas. */
#pragma once

#include "fold/state.h"

/* Initializes both trees. */
void rdmeta_fold_brokers_init(rdmeta_fold_t *f);
/* Frees all brokers and configurations. */
void rdmeta_fold_brokers_destroy(rdmeta_fold_t *f);

/* Returns a broker, a new one if there is none; NULL: no memory. */
rdmeta_fold_broker_t *rdmeta_fold_broker_get(rdmeta_fold_t *f, int32_t id);

/* Makes a broker one that is gone; nothing of the open version touches it. */
void rdmeta_fold_broker_gone(rdmeta_fold_t *f, rdmeta_fold_broker_t *b);
/* Frees the brokers that are gone, with their racks. None is in the open
 * version. */
void rdmeta_fold_brokers_drop(rdmeta_fold_t *f);
/* Notes that racks may differ, for a reason of the open version. */
void rdmeta_fold_racks_moved(rdmeta_fold_t *f, uint8_t reason,
                             const rdmeta_fold_began_t *next);

/* An endpoint in a change record's detail: host:port, and ` rack=` with a rack
 * if the broker has one. */
typedef struct rdmeta_fold_endpoint {
        rdmeta_str_t host, rack; /* rack.data NULL: none */
        int32_t port;
} rdmeta_fold_endpoint_t;

/* Reads a detail. Returns 0 if it is no endpoint. */
int rdmeta_fold_endpoint(rdmeta_str_t detail, rdmeta_fold_endpoint_t *out);

/* Sets *racks to the number of racks that the brokers of a list lie on. It is
 * -1 if the list is null, or if a broker has no rack or never gave it. It
 * counts each list once until f->racks_turn changes. Returns NO_MEMORY. */
rdmeta_err_t rdmeta_fold_racks(rdmeta_fold_t *f, uint32_t replicas,
                               int32_t *racks);

/* Returns a configuration; NULL: there is none. `broker` may be
 * RDMETA_FOLD_OF_..., `resource` is a topic's name or 0. */
rdmeta_fold_config_t *rdmeta_fold_config_find(rdmeta_fold_t *f, int32_t broker,
                                              uint32_t resource,
                                              uint32_t key);
/* Returns the first configuration of a topic; NULL: it has none. */
rdmeta_fold_config_t *rdmeta_fold_config_of(rdmeta_fold_t *f,
                                            uint32_t resource);
/* Adds a configuration that is not there yet, with that key; NULL: no
 * memory. */
rdmeta_fold_config_t *rdmeta_fold_config_add(rdmeta_fold_t *f, int32_t broker,
                                             uint32_t resource, uint32_t key);
void rdmeta_fold_config_drop(rdmeta_fold_t *f, rdmeta_fold_config_t *c);

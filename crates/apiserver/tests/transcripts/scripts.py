"""The request scripts: families over kinds and operations, and cases written by hand."""
import copy, itertools, json, random

M = {'name': 'a'}
U = {'name': '{u}'}
BASE={
 'pod':('/api/v1/namespaces/{ns}/pods',{'metadata':M,'spec':{'containers':[{'name':'c','image':'i'}]}}),
 'dep':('/apis/apps/v1/namespaces/{ns}/deployments',{'metadata':M,'spec':{'selector':{'matchLabels':{'a':'b'}},'template':{'metadata':{'labels':{'a':'b'}},'spec':{'containers':[{'name':'c','image':'i'}]}}}}),
 'sts':('/apis/apps/v1/namespaces/{ns}/statefulsets',{'metadata':M,'spec':{'serviceName':'s','selector':{'matchLabels':{'a':'b'}},'template':{'metadata':{'labels':{'a':'b'}},'spec':{'containers':[{'name':'c','image':'i'}]}}}}),
 'ds':('/apis/apps/v1/namespaces/{ns}/daemonsets',{'metadata':M,'spec':{'selector':{'matchLabels':{'a':'b'}},'template':{'metadata':{'labels':{'a':'b'}},'spec':{'containers':[{'name':'c','image':'i'}]}}}}),
 'rs':('/apis/apps/v1/namespaces/{ns}/replicasets',{'metadata':M,'spec':{'selector':{'matchLabels':{'a':'b'}},'template':{'metadata':{'labels':{'a':'b'}},'spec':{'containers':[{'name':'c','image':'i'}]}}}}),
 'job':('/apis/batch/v1/namespaces/{ns}/jobs',{'metadata':M,'spec':{'template':{'spec':{'restartPolicy':'Never','containers':[{'name':'c','image':'i'}]}}}}),
 'cj':('/apis/batch/v1/namespaces/{ns}/cronjobs',{'metadata':M,'spec':{'schedule':'* * * * *','jobTemplate':{'spec':{'template':{'spec':{'restartPolicy':'Never','containers':[{'name':'c','image':'i'}]}}}}}}),
 'svc':('/api/v1/namespaces/{ns}/services',{'metadata':M,'spec':{'ports':[{'port':80}]}}),
 'ing':('/apis/networking.k8s.io/v1/namespaces/{ns}/ingresses',{'metadata':M,'spec':{'rules':[{'host':'a.b','http':{'paths':[{'path':'/','pathType':'Prefix','backend':{'service':{'name':'s','port':{'number':80}}}}]}}]}}),
 'pvc':('/api/v1/namespaces/{ns}/persistentvolumeclaims',{'metadata':M,'spec':{'accessModes':['ReadWriteOnce'],'resources':{'requests':{'storage':'1Gi'}}}}),
 'cm':('/api/v1/namespaces/{ns}/configmaps',{'metadata':M}),
 'sec':('/api/v1/namespaces/{ns}/secrets',{'metadata':M}),
 'sa':('/api/v1/namespaces/{ns}/serviceaccounts',{'metadata':M}),
 'role':('/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/roles',{'metadata':M,'rules':[{'apiGroups':[''],'resources':['pods'],'verbs':['get']}]}),
 'crole':('/apis/rbac.authorization.k8s.io/v1/clusterroles',{'metadata':U,'rules':[{'apiGroups':[''],'resources':['pods'],'verbs':['get']}]}),
 'rb':('/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/rolebindings',{'metadata':M,'roleRef':{'apiGroup':'rbac.authorization.k8s.io','kind':'Role','name':'x'},'subjects':[{'kind':'User','name':'u'}]}),
 'crb':('/apis/rbac.authorization.k8s.io/v1/clusterrolebindings',{'metadata':U,'roleRef':{'apiGroup':'rbac.authorization.k8s.io','kind':'ClusterRole','name':'x'},'subjects':[{'kind':'User','name':'u'}]}),
 'hpa':('/apis/autoscaling/v2/namespaces/{ns}/horizontalpodautoscalers',{'metadata':M,'spec':{'scaleTargetRef':{'kind':'Deployment','name':'x','apiVersion':'apps/v1'},'maxReplicas':3}}),
 'pdb':('/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets',{'metadata':M,'spec':{'minAvailable':1,'selector':{'matchLabels':{'a':'b'}}}}),
 'np':('/apis/networking.k8s.io/v1/namespaces/{ns}/networkpolicies',{'metadata':M,'spec':{'podSelector':{}}}),
 'ns':('/api/v1/namespaces',{'metadata':U}),
 'lease':('/apis/coordination.k8s.io/v1/namespaces/{ns}/leases',{'metadata':M,'spec':{}}),
 'ev':('/api/v1/namespaces/{ns}/events',{'metadata':M,'involvedObject':{'kind':'Pod','name':'p','namespace':'{ns}'},'type':'Normal','reason':'r'}),
 'crd':('/apis/apiextensions.k8s.io/v1/customresourcedefinitions',{'metadata':{'name':'foos.x.io'},'spec':{'group':'x.io','names':{'plural':'foos','kind':'Foo'},'scope':'Namespaced','versions':[{'name':'v1','served':True,'storage':True,'schema':{'openAPIV3Schema':{'type':'object'}}}]}}),
 'rc':('/api/v1/namespaces/{ns}/replicationcontrollers',{'metadata':M,'spec':{'selector':{'a':'b'},'template':{'metadata':{'labels':{'a':'b'}},'spec':{'containers':[{'name':'c','image':'i'}]}}}}),
 'pt':('/api/v1/namespaces/{ns}/podtemplates',{'metadata':M,'template':{'metadata':{'labels':{'a':'b'}},'spec':{'containers':[{'name':'c','image':'i'}]}}}),
 'ep':('/api/v1/namespaces/{ns}/endpoints',{'metadata':M,'subsets':[{'addresses':[{'ip':'1.2.3.4'}],'ports':[{'port':80}]}]}),
 'lr':('/api/v1/namespaces/{ns}/limitranges',{'metadata':M,'spec':{'limits':[{'type':'Container','max':{'cpu':'2'},'min':{'memory':'1Mi'}}]}}),
 'rq':('/api/v1/namespaces/{ns}/resourcequotas',{'metadata':M,'spec':{'hard':{'pods':'100','limits.cpu':'10'}}}),
 'pv':('/api/v1/persistentvolumes',{'metadata':U,'spec':{'capacity':{'storage':'1Gi'},'accessModes':['ReadWriteOnce'],'hostPath':{'path':'/x'}}}),
 'node':('/api/v1/nodes',{'metadata':U,'spec':{},'status':{'capacity':{'cpu':'4'}}}),
 'cr':('/apis/apps/v1/namespaces/{ns}/controllerrevisions',{'metadata':M,'revision':1,'data':{'a':{'b':1}}}),
 'ingc':('/apis/networking.k8s.io/v1/ingressclasses',{'metadata':U,'spec':{'controller':'x.io/y'}}),
 'sc':('/apis/storage.k8s.io/v1/storageclasses',{'metadata':U,'provisioner':'x.io/y'}),
 'csid':('/apis/storage.k8s.io/v1/csidrivers',{'metadata':U,'spec':{}}),
 'csin':('/apis/storage.k8s.io/v1/csinodes',{'metadata':U,'spec':{'drivers':[]}}),
 'pc':('/apis/scheduling.k8s.io/v1/priorityclasses',{'metadata':U,'value':5}),
 'rtc':('/apis/node.k8s.io/v1/runtimeclasses',{'metadata':U,'handler':'x'}),
 'eps':('/apis/discovery.k8s.io/v1/namespaces/{ns}/endpointslices',{'metadata':M,'addressType':'IPv4','endpoints':[{'addresses':['1.2.3.4']}],'ports':[{'port':80}]}),
 'mwc':('/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations',{'metadata':U,'webhooks':[]}),
 'vwc':('/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations',{'metadata':U,'webhooks':[]}),
 'ev1':('/apis/events.k8s.io/v1/namespaces/{ns}/events',{'metadata':M,'eventTime':'2020-01-01T00:00:00.000000Z','reportingController':'x.io/y','reportingInstance':'i','action':'a','reason':'r','type':'Normal','regarding':{'kind':'Pod','name':'p','namespace':'{ns}'}}),
 'hpa1':('/apis/autoscaling/v1/namespaces/{ns}/horizontalpodautoscalers',{'metadata':M,'spec':{'scaleTargetRef':{'kind':'Deployment','name':'x','apiVersion':'apps/v1'},'maxReplicas':3,'targetCPUUtilizationPercentage':50}}),
 'fs':('/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas',{'metadata':U,'spec':{'priorityLevelConfiguration':{'name':'global-default'},'rules':[{'subjects':[{'kind':'Group','group':{'name':'x'}}],'nonResourceRules':[{'verbs':['get'],'nonResourceURLs':['/x']}]}]}}),
 'plc':('/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations',{'metadata':U,'spec':{'type':'Limited','limited':{'limitResponse':{'type':'Reject'}}}}),
}
D='__D__'

def setp(o,path,v):
    ks=path.split('.')
    for i,k in enumerate(ks):
        k=int(k) if k.lstrip('-').isdigit() else k.replace('~','.')
        if i==len(ks)-1:
            if v == D:
                o.pop(k,None) if isinstance(o,dict) else o.pop(k)
            elif isinstance(o,list) and k>=len(o): o.append(v)
            else: o[k]=v
        else:
            if isinstance(o,dict) and k not in o: o[k]={}
            o=o[k]

L254='a'*254
T='spec.template.spec.'
meta=[{'metadata.name':'A_b'},{'metadata.name':L254},{'metadata.name':'-a'},{'metadata.name':''},{'metadata.generateName':'A_','metadata.name':D},{'metadata.labels':{'a b':'x','-':'y','a':'x y','b':'z'*64,'x/y/z':'a'}},{'metadata.annotations':{'a b':'x'}},{'metadata.annotations':{'a':'{x*262200}'}},{'metadata.finalizers':['x']},{'metadata.finalizers':['x.y/z','a b']},{'metadata.ownerReferences':[{}]},{'metadata.ownerReferences':[{'apiVersion':'v1','kind':'Pod','name':'a','uid':'u','controller':True},{'apiVersion':'v1','kind':'Pod','name':'b','uid':'v','controller':True}]},{'metadata.ownerReferences':[{'apiVersion':'v1','kind':'Event','name':'a','uid':'u'}]},{'metadata.namespace':'other'},{'metadata.generation':-1},{'metadata.deletionGracePeriodSeconds':-1},{'metadata.managedFields':[{'manager':'x'}]},{'metadata.selfLink':'x'}]
pods=lambda t:[{t+'containers':[]},{t+'containers':D},{t+'containers.0.name':D},{t+'containers.0.image':D},{t+'containers.0.name':'A_'},{t+'containers.0.image':' x'},{t+'containers.1':{'name':'c','image':'i'}},{t+'restartPolicy':'Foo'},{t+'dnsPolicy':'Foo'},{t+'containers.0.ports':[{}]},{t+'containers.0.ports':[{'containerPort':0}]},{t+'containers.0.ports':[{'containerPort':70000,'protocol':'X'}]},{t+'containers.0.ports':[{'containerPort':80,'name':'A'},{'containerPort':81,'name':'toolongnamefortheport'},{'containerPort':82,'name':'x'},{'containerPort':83,'name':'x'}]},{t+'containers.0.ports':[{'containerPort':80,'hostPort':80},{'containerPort':81,'hostPort':80}]},
 {t+'containers.0.env':[{'name':''},{'name':'1=2'},{'name':'A','value':'x','valueFrom':{'fieldRef':{'fieldPath':'metadata.name'}}},{'name':'B','valueFrom':{}},{'name':'C','valueFrom':{'fieldRef':{'fieldPath':'foo'}}},{'name':'D','valueFrom':{'secretKeyRef':{'name':'','key':''}}}]},{t+'containers.0.envFrom':[{}]},{t+'containers.0.resources':{'limits':{'cpu':'1','foo':'1'},'requests':{'cpu':'2','memory':'-1'}}},{t+'containers.0.resources.requests':{'memory':'1m'}},{t+'containers.0.volumeMounts':[{'name':'x','mountPath':''},{'name':'','mountPath':'/a'}]},{t+'volumes':[{'name':''},{'name':'A'},{'name':'a','emptyDir':{},'secret':{'secretName':'x'}},{'name':'b','secret':{}},{'name':'c','configMap':{}},{'name':'b','hostPath':{'path':''}},{'name':'d','persistentVolumeClaim':{}}]},{t+'containers.0.livenessProbe':{}},{t+'containers.0.livenessProbe':{'httpGet':{'port':0,'path':'x'}}},{t+'containers.0.livenessProbe':{'httpGet':{'port':'A'},'exec':{'command':[]}}},{t+'containers.0.livenessProbe':{'exec':{'command':['x']},'successThreshold':2,'timeoutSeconds':-1}},{t+'containers.0.readinessProbe':{'tcpSocket':{'port':99999999}}},{t+'containers.0.lifecycle':{'preStop':{}}},{t+'containers.0.imagePullPolicy':'X'},{t+'containers.0.terminationMessagePolicy':'X'},{t+'terminationGracePeriodSeconds':-1},{t+'activeDeadlineSeconds':0},{t+'nodeSelector':{'a b':'c'}},{t+'tolerations':[{'key':'a','operator':'X'},{'operator':'Equal','key':'','value':'x'},{'key':'a','effect':'F'},{'key':'a','operator':'Exists','value':'x'},{'key':'a','tolerationSeconds':1}]},{t+'serviceAccountName':'A_'},{t+'hostname':'A_'},{t+'initContainers':[{'name':'c','image':'x'}]},{t+'initContainers':[{'name':'d','image':'x','livenessProbe':{'exec':{'command':['x']}}}]},{t+'imagePullSecrets':[{'name':''}]},{t+'priorityClassName':'nope'},{t+'priority':5},{t+'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{'nodeSelectorTerms':[]}}}},{t+'affinity':{'podAntiAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':[{'labelSelector':{'matchLabels':{'a':'b'}}}]}}},{t+'topologySpreadConstraints':[{'maxSkew':0,'whenUnsatisfiable':'x'}]},{t+'securityContext':{'runAsUser':-1,'fsGroup':-5}},{t+'containers.0.securityContext':{'privileged':True,'allowPrivilegeEscalation':False}},{t+'schedulerName':''},{t+'runtimeClassName':'nope'},{t+'dnsConfig':{'nameservers':['x']}},{t+'dnsPolicy':'None'},{t+'hostAliases':[{'ip':'x'}]},{t+'containers.0.command':['']},{t+'containers.0.workingDir':'x'},{t+'ephemeralContainers':[{'name':'e','image':'x'}]},{t+'preemptionPolicy':'X'},{t+'subdomain':'A_'},{t+'nodeName':'A_'}]
sel=[{'spec.selector':D},{'spec.selector':{}},{'spec.selector.matchLabels':{'a':'c'}},{'spec.selector.matchLabels':{'a b':'c'}},{'spec.selector':{'matchExpressions':[{'key':'a','operator':'Foo'},{'key':'b','operator':'In'},{'key':'','operator':'Exists','values':['x']}]}},{'spec.template.metadata':D},{'spec.replicas':-1},{T+'restartPolicy':'Never'},{'spec.template':D},{T+'activeDeadlineSeconds':5},{'spec.minReadySeconds':-1}]
C={
 'cm':meta+[{'data':{'a b':'c'}},{'data':{'':'c','..':'x','.':'y'}},{'data':{'a':'x'},'binaryData':{'a':'eA=='}},{'data':{'a':'{x*1048600}'}}],
 'pod':meta[:3]+pods('spec.')+[{'metadata.name':'a.b'},{'metadata.name':'a'*64}],
 'dep':sel+[{'spec.strategy':{'type':'Foo'}},{'spec.strategy':{'type':'Recreate','rollingUpdate':{}}},{'spec.strategy.rollingUpdate':{'maxSurge':0,'maxUnavailable':0}},{'spec.strategy.rollingUpdate':{'maxSurge':'x','maxUnavailable':'110%'}},{'spec.strategy.rollingUpdate':{'maxSurge':-1}},{'spec.progressDeadlineSeconds':0},{'spec.revisionHistoryLimit':-1},{'spec.minReadySeconds':700},{'metadata.name':'a.b'},{'metadata.name':'A'},{T+'containers':[]},{T+'containers.0.image':D},{T+'containers.0.ports':[{'containerPort':0}]}],
 'sts':sel+[{'spec.podManagementPolicy':'X'},{'spec.updateStrategy':{'type':'X'}},{'spec.updateStrategy':{'type':'OnDelete','rollingUpdate':{'partition':1}}},{'spec.updateStrategy':{'rollingUpdate':{'partition':-1}}},{'spec.serviceName':D},{'spec.serviceName':'A_'},{'spec.volumeClaimTemplates':[{'metadata':{'name':'x'}}]},{'spec.volumeClaimTemplates':[{'metadata':{'name':'x'},'spec':{'accessModes':['ReadWriteOnce'],'resources':{'requests':{'storage':'1Gi'}}}}]},{'metadata.name':'a.b'},{'spec.persistentVolumeClaimRetentionPolicy':{'whenScaled':'X'}},{'spec.ordinals':{'start':-1}}],
 'ds':sel[:6]+[{'spec.updateStrategy':{'type':'X'}},{'spec.updateStrategy':{'rollingUpdate':{'maxUnavailable':0}}},{'spec.updateStrategy':{'rollingUpdate':{'maxSurge':1}}},{T+'restartPolicy':'Never'}],
 'rs':sel,
 'job':[{'spec.template.spec.restartPolicy':D},{'spec.template.spec.restartPolicy':'Always'},{'spec.parallelism':-1,'spec.completions':-1},{'spec.backoffLimit':-1},{'spec.activeDeadlineSeconds':-1},{'spec.ttlSecondsAfterFinished':-1},{'spec.completionMode':'X'},{'spec.completionMode':'Indexed'},{'spec.selector':{'matchLabels':{'a':'b'}}},{'spec.manualSelector':True},{'spec.podFailurePolicy':{}},{'spec.podReplacementPolicy':'X'},{'spec.template':D},{'spec.backoffLimitPerIndex':1},{'spec.maxFailedIndexes':1},{'metadata.name':'a'*64},{'metadata.name':'a.b'},{T+'containers':[]}],
 'cj':[{'spec.schedule':''},{'spec.schedule':'foo'},{'spec.schedule':'61 * * * *'},{'spec.schedule':'TZ=UTC * * * * *'},{'spec.timeZone':'Foo'},{'spec.timeZone':''},{'spec.concurrencyPolicy':'X'},{'spec.startingDeadlineSeconds':-1},{'spec.successfulJobsHistoryLimit':-1,'spec.failedJobsHistoryLimit':-1},{'spec.jobTemplate':D},{'metadata.name':'a'*53},{'spec.jobTemplate.spec.template.spec.restartPolicy':D},{'spec.jobTemplate.spec.manualSelector':True}],
 'svc':[{'spec.ports':[]},{'spec.ports':D},{'spec.ports':[{}]},{'spec.ports':[{'port':0}]},{'spec.ports':[{'port':80},{'port':81}]},{'spec.ports':[{'name':'a','port':80},{'name':'a','port':81}]},{'spec.ports':[{'name':'a','port':80},{'name':'b','port':80}]},{'spec.ports':[{'name':'A_','port':70000,'protocol':'X','targetPort':'x'*20}]},{'spec.ports':[{'port':80,'targetPort':0}]},{'spec.ports':[{'port':80,'targetPort':70000}]},{'spec.type':'Foo'},{'spec.type':'ExternalName'},{'spec.type':'ExternalName','spec.externalName':'A_'},{'spec.clusterIP':'x'},{'spec.clusterIP':'1.2.3.4'},{'spec.clusterIP':'None','spec.type':'NodePort'},{'spec.clusterIP':'None','spec.ports':D},{'spec.sessionAffinity':'X'},{'spec.ports':[{'port':80,'nodePort':100}],'spec.type':'NodePort'},{'spec.ports':[{'port':80,'nodePort':30000}]},{'spec.externalIPs':['x','127.0.0.1']},{'spec.selector':{'a b':'c'}},{'metadata.name':'1a'},{'metadata.name':'a.b'},{'metadata.name':'a'*64},{'spec.externalTrafficPolicy':'Local'},{'spec.internalTrafficPolicy':'X'},{'spec.loadBalancerIP':'1.2.3.4'},{'spec.loadBalancerClass':'x'},{'spec.ipFamilies':['IPv6']},{'spec.ipFamilyPolicy':'X'},{'spec.loadBalancerSourceRanges':['x']},{'spec.sessionAffinity':'ClientIP','spec.sessionAffinityConfig':{'clientIP':{'timeoutSeconds':0}}},{'spec.healthCheckNodePort':5}],
 'ing':[{'spec':{}},{'spec':D},{'spec.rules.0.host':'A_'},{'spec.rules.0.host':'1.2.3.4'},{'spec.rules.0.host':'*.a.b'},{'spec.rules.0.http.paths':[]},{'spec.rules.0.http.paths.0.path':'x'},{'spec.rules.0.http.paths.0.path':D},{'spec.rules.0.http.paths.0.pathType':D},{'spec.rules.0.http.paths.0.pathType':'X'},{'spec.rules.0.http.paths.0.path':'/a//b/../c'},{'spec.rules.0.http.paths.0.backend':{}},{'spec.rules.0.http.paths.0.backend':{'service':{'name':''}}},{'spec.rules.0.http.paths.0.backend.service.port':{'number':80,'name':'x'}},{'spec.rules.0.http.paths.0.backend.service.port':{'number':0}},{'spec.rules.0.http.paths.0.backend.service.port':{'name':'A_'}},{'spec.rules.0.http.paths.0.backend.resource':{'kind':'x','name':'y'}},{'spec.tls':[{'hosts':['A_'],'secretName':'B_'}]},{'spec.ingressClassName':'A_'},{'metadata.annotations':{'kubernetes.io/ingress.class':'x'},'spec.ingressClassName':'y'},{'spec.defaultBackend':{}}],
 'pvc':[{'spec':{}},{'spec.accessModes':[]},{'spec.accessModes':['X']},{'spec.resources':D},{'spec.resources.requests':{'storage':'0'}},{'spec.resources.requests':{'storage':'-1'}},{'spec.resources.requests':{'cpu':'1'}},{'spec.storageClassName':'A_'},{'spec.volumeMode':'X'},{'spec.dataSource':{'kind':'x','name':''}},{'spec.accessModes':['ReadWriteOncePod','ReadWriteOnce']},{'spec.selector':{'matchLabels':{'a b':'c'}}},{'metadata.name':'A'}],
 'sec':[{'data':{'a b':'eA=='}},{'type':'kubernetes.io/tls'},{'type':'kubernetes.io/dockerconfigjson'},{'type':'kubernetes.io/dockerconfigjson','data':{'.dockerconfigjson':'eA=='}},{'type':'kubernetes.io/basic-auth'},{'type':'kubernetes.io/ssh-auth'},{'type':'kubernetes.io/service-account-token'},{'stringData':{'a':'{x*1048600}'}},{'type':'kubernetes.io/dockercfg'}],
 'sa':[{'metadata.name':'A'},{'secrets':[{'name':'x'}]}],
 'role':[{'rules':[{}]},{'rules':[{'verbs':['get']}]},{'rules':[{'verbs':['get'],'apiGroups':['']}]},{'rules':[{'verbs':['get'],'nonResourceURLs':['/x']}]},{'metadata.name':'a/b'},{'metadata.name':'A:b'}],
 'crole':[{'rules':[{}]},{'rules':[{'verbs':['get'],'nonResourceURLs':['/x'],'resources':['a'],'apiGroups':['']}]},{'aggregationRule':{}},{'aggregationRule':{'clusterRoleSelectors':[]}}],
 'rb':[{'roleRef':D},{'roleRef.kind':'X'},{'roleRef.apiGroup':'x'},{'roleRef.name':''},{'subjects':[{}]},{'subjects':[{'kind':'X','name':'a'}]},{'subjects':[{'kind':'ServiceAccount','name':'a'}]},{'subjects':[{'kind':'ServiceAccount','name':'A_','namespace':'x'}]},{'subjects':[{'kind':'User','name':'a','apiGroup':'x'}]},{'subjects':[{'kind':'Group','name':''}]},{'subjects':D}],
 'crb':[{'roleRef.kind':'Role'},{'subjects':[{'kind':'ServiceAccount','name':'a'}]}],
 'hpa':[{'spec':{}},{'spec.maxReplicas':0},{'spec.minReplicas':0},{'spec.minReplicas':5},{'spec.scaleTargetRef':{}},{'spec.scaleTargetRef.name':'a/b'},{'spec.metrics':[{}]},{'spec.metrics':[{'type':'Resource'}]},{'spec.metrics':[{'type':'X'}]},{'spec.metrics':[{'type':'Resource','resource':{}}]},{'spec.metrics':[{'type':'Resource','resource':{'name':'cpu','target':{'type':'Utilization'}}}]},{'spec.metrics':[{'type':'Resource','resource':{'name':'cpu','target':{'type':'Utilization','averageUtilization':0}}}]},{'spec.behavior':{'scaleUp':{'stabilizationWindowSeconds':-1,'selectPolicy':'X','policies':[{'type':'X','value':0,'periodSeconds':0}]}}},{'spec.metrics':[{'type':'Pods','pods':{}}]}],
 'pdb':[{'spec.maxUnavailable':1},{'spec.minAvailable':-1},{'spec.minAvailable':'x'},{'spec.minAvailable':'110%'},{'spec.selector':{'matchLabels':{'a b':'c'}}},{'spec.unhealthyPodEvictionPolicy':'X'},{'spec':{}}],
 'np':[{'spec':D},{'spec.policyTypes':['X']},{'spec.policyTypes':['Ingress','Egress','X']},{'spec.ingress':[{'from':[{}]}]},{'spec.ingress':[{'from':[{'ipBlock':{'cidr':'x'}}]}]},{'spec.ingress':[{'from':[{'ipBlock':{'cidr':'10.0.0.0/8','except':['1.0.0.0/8']},'podSelector':{}}]}]},{'spec.ingress':[{'ports':[{'port':0}]}]},{'spec.ingress':[{'ports':[{'port':'A_','protocol':'X'}]}]},{'spec.ingress':[{'ports':[{'endPort':5}]}]},{'spec.ingress':[{'ports':[{'port':10,'endPort':5}]}]},{'spec.podSelector':{'matchLabels':{'a b':'c'}}},{'spec.egress':[{'to':[{'podSelector':{'matchExpressions':[{'key':'a','operator':'X'}]}}]}]}],
 'ns':[{'metadata.name':'A'},{'metadata.name':'a'*64},{'metadata.name':'a.b'},{'spec':{'finalizers':['x']}},{'metadata.labels':{'kubernetes.io/metadata.name':'z'}}],
 'lease':[{'spec.leaseDurationSeconds':0},{'spec.leaseTransitions':-1},{'spec.strategy':'x'},{'spec.holderIdentity':''}],
 'ev':[{'involvedObject':{}},{'involvedObject.namespace':'other'},{'type':'Foo'},{'reason':D},{'metadata.name':'A'}],
 'crd':[{'metadata.name':'x'},{'spec.group':''},{'spec.group':'A_'},{'spec.names':{}},{'spec.names.kind':'a_'},{'spec.names.plural':'Foos','metadata.name':'Foos.x.io'},{'spec.scope':''},{'spec.scope':'X'},{'spec.versions':[]},{'spec.versions.0.storage':False},{'spec.versions.1':{'name':'v2','served':True,'storage':True,'schema':{'openAPIV3Schema':{'type':'object'}}}},{'spec.versions.1':{'name':'v1','served':True,'storage':False,'schema':{'openAPIV3Schema':{'type':'object'}}}},{'spec.versions.0.schema':D},{'spec.versions.0.schema.openAPIV3Schema':{}},{'spec.versions.0.schema.openAPIV3Schema':{'type':'string'}},{'spec.versions.0.schema.openAPIV3Schema':{'type':'object','properties':{'spec':{'properties':{'a':{'type':'string'}}}}}},{'spec.versions.0.schema.openAPIV3Schema':{'type':'object','properties':{'spec':{'type':'object','properties':{'a':{}}}}}},{'spec.versions.0.schema.openAPIV3Schema':{'type':'object','properties':{'spec':{'type':'array'}}}},{'spec.versions.0.schema.openAPIV3Schema':{'type':'object','properties':{'spec':{'type':'foo'}}}},{'spec.versions.0.schema.openAPIV3Schema':{'type':'object','properties':{'spec':{'type':'object','properties':{'a':{'type':'string','default':1}}}}}},{'spec.versions.0.schema.openAPIV3Schema':{'type':'object','properties':{'spec':{'type':'object','properties':{'a':{'type':'array','items':{'type':'object'},'x-kubernetes-list-type':'map'}}}}}},{'spec.versions.0.schema.openAPIV3Schema':{'type':'object','properties':{'spec':{'type':'object','properties':{'a':{'type':'array','items':{'type':'object','properties':{'k':{'type':'string'}}},'x-kubernetes-list-type':'map','x-kubernetes-list-map-keys':['k']}}}}}},{'spec.versions.0.name':'V1'},{'spec.versions.0.subresources':{'scale':{}}},{'spec.versions.0.additionalPrinterColumns':[{}]},{'spec.versions.0.additionalPrinterColumns':[{'name':'a','type':'x','jsonPath':'.x['}]},{'spec.conversion':{'strategy':'X'}},{'spec.conversion':{'strategy':'Webhook'}},{'spec.preserveUnknownFields':True},{'spec.versions.0.schema.openAPIV3Schema':{'type':'object','properties':{'spec':{'$ref':'x'}}}},{'spec.versions.0.schema.openAPIV3Schema':{'type':'object','properties':{'metadata':{'type':'object','properties':{'labels':{'type':'object'}}}}}},{'spec.versions.0.schema.openAPIV3Schema':{'type':'object','x-kubernetes-preserve-unknown-fields':False}},{'spec.versions.0.schema.openAPIV3Schema':{'type':'object','properties':{'spec':{'type':'object','properties':{'a':{'type':'string','pattern':'['}}}}}},{'spec.versions.0.schema.openAPIV3Schema':{'type':'object','properties':{'spec':{'type':'object','required':['x'],'properties':{'a':{'type':'string'}},'additionalProperties':{'type':'string'}}}}}],
}

KINDS = list(BASE)


def step(method, path, body=None, kind="", accept=""):
    out = {"m": method, "p": path}
    if kind:
        out["t"] = kind
    if accept:
        out["a"] = accept
    if body is not None:
        out["b"] = body
    return out


def changed(base, changes):
    out = copy.deepcopy(base)
    for path, value in changes.items():
        setp(out, path, copy.deepcopy(value))
    return out


def gvk(path):
    parts = path.strip("/").split("/")
    return parts[1] if parts[0] == "api" else parts[1] + "/" + parts[2]


NAMES = {"pod": "Pod", "dep": "Deployment", "sts": "StatefulSet", "ds": "DaemonSet", "rs": "ReplicaSet", "job": "Job", "cj": "CronJob", "svc": "Service", "ing": "Ingress", "pvc": "PersistentVolumeClaim",
         "cm": "ConfigMap", "sec": "Secret", "sa": "ServiceAccount", "role": "Role", "crole": "ClusterRole", "rb": "RoleBinding", "crb": "ClusterRoleBinding", "hpa": "HorizontalPodAutoscaler", "pdb": "PodDisruptionBudget",
         "np": "NetworkPolicy", "ns": "Namespace", "lease": "Lease", "ev": "Event", "rc": "ReplicationController", "pt": "PodTemplate", "ep": "Endpoints", "lr": "LimitRange", "rq": "ResourceQuota", "pv": "PersistentVolume",
         "node": "Node", "cr": "ControllerRevision", "ingc": "IngressClass", "sc": "StorageClass", "csid": "CSIDriver", "csin": "CSINode", "pc": "PriorityClass", "rtc": "RuntimeClass", "eps": "EndpointSlice",
         "mwc": "MutatingWebhookConfiguration", "vwc": "ValidatingWebhookConfiguration", "ev1": "Event", "hpa1": "HorizontalPodAutoscaler", "fs": "FlowSchema", "plc": "PriorityLevelConfiguration"}


def crud():
    """Every kind: made, read in all forms, listed, changed, deleted."""
    for kind in KINDS:
        if kind == "crd":
            continue
        path, base = BASE[kind]
        name = base["metadata"]["name"]
        one = path + "/" + name
        listed = path + "?fieldSelector=metadata.name%3D" + name
        yield kind, [
            step("POST", path, base), step("POST", path, base), step("GET", one), step("GET", one, accept="table"), step("GET", one, accept="partial"),
            step("GET", listed), step("GET", listed, accept="table"),
            step("PATCH", one, {"metadata": {"labels": {"x": "1"}, "annotations": {"y": "2"}}}, "merge"),
            step("PATCH", one, {"metadata": {"labels": {"x": None, "z": "3"}}}, "strategic"),
            step("PATCH", one, [{"op": "test", "path": "/metadata/labels/z", "value": "3"}, {"op": "remove", "path": "/metadata/annotations"}], "json"),
            step("PATCH", one, {"metadata": {"resourceVersion": "1", "labels": {"x": "9"}}}, "merge"),
            step("DELETE", one), step("GET", one), step("DELETE", one),
        ]


def apply():
    """Every kind: applied by two managers, in conflict, by force, with less."""
    for kind, name in NAMES.items():
        path, base = BASE[kind]
        one = path + "/" + base["metadata"]["name"]
        full = dict(copy.deepcopy(base), apiVersion=gvk(path), kind=name)
        labelled = changed(full, {"metadata.labels": {"x": "1", "y": "1"}})
        other = {"apiVersion": gvk(path), "kind": name, "metadata": {"name": base["metadata"]["name"], "labels": {"x": "2"}}}
        yield kind, [
            step("PATCH", one + "?fieldManager=one", labelled, "apply"), step("PATCH", one + "?fieldManager=one", labelled, "apply"),
            step("PATCH", one + "?fieldManager=two", other, "apply"), step("PATCH", one + "?fieldManager=two&force=true", other, "apply"),
            step("PATCH", one + "?fieldManager=one", full, "apply"), step("PATCH", one, full, "apply"),
            step("PATCH", one + "?fieldManager=one", dict(full, bogus=1), "apply"),
        ]


def strictness():
    """Every kind: unknown and repeated fields, wrong types, wrong kinds."""
    for kind, name in NAMES.items():
        path, base = BASE[kind]
        dry = path + "?dryRun=All"
        unknown = changed(base, {"bogus": 1, "metadata.bogus": {"a": 1}})
        text = json.dumps(base)
        twice = text[:-1] + ', "metadata": ' + json.dumps(base["metadata"]) + "}"
        yield kind, [
            step("POST", dry + "&fieldValidation=Strict", unknown), step("POST", dry + "&fieldValidation=Warn", unknown), step("POST", dry + "&fieldValidation=Ignore", unknown),
            step("POST", dry + "&fieldValidation=Strict", twice), step("POST", dry, changed(base, {"metadata": []})), step("POST", dry, changed(base, {"metadata.labels": {"a": 1}})),
            step("POST", dry, dict(base, kind="Bogus", apiVersion=gvk(path))), step("POST", dry, dict(base, kind=name, apiVersion="bogus/v1")),
            step("POST", dry, changed(base, {"metadata.namespace": "elsewhere"})), step("POST", path, "{"),
        ]


def writes():
    """Every kind: dry runs, generated names, stale revisions, wrong names, preconditions."""
    for kind in KINDS:
        if kind == "crd":
            continue
        path, base = BASE[kind]
        name = base["metadata"]["name"]
        one = path + "/" + name
        generated = changed(base, {"metadata": {"generateName": "g-"}})
        yield kind, [
            step("POST", path + "?dryRun=All", base), step("GET", one), step("POST", path + "?dryRun=All", generated), step("POST", path, base),
            step("PUT", one, changed(base, {"metadata": {"name": name, "resourceVersion": "1"}})), step("PUT", one, changed(base, {"metadata.name": name + "x"})),
            step("PUT", one, changed(base, {"metadata": {"name": name, "labels": {"q": "1"}, "resourceVersion": "{rv:3}"}})),
            step("PUT", path + "/none", changed(base, {"metadata.name": "none"})),
            step("DELETE", one, {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": "x"}}), step("DELETE", one + "?dryRun=All"),
            step("DELETE", one, {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0, "propagationPolicy": "Background"}),
        ]


def mistakes():
    """What people do wrong, one change to a valid object at a time."""
    for kind, cases in C.items():
        for number, case in enumerate(cases):
            try:
                body = changed(BASE[kind][1], case)
            except (KeyError, IndexError, TypeError):
                continue
            yield "%s-%03d" % (kind, number), [step("POST", BASE[kind][0] + "?dryRun=All", body)]


UPDATES = {
    "pod": [{"spec.containers.0.image": "j"}, {"spec.containers.0.name": "d"}, {"spec.nodeSelector": {"a": "b"}}, {"spec.activeDeadlineSeconds": 5}, {"spec.restartPolicy": "Never"}, {"spec.containers.1": {"name": "d", "image": "i"}}],
    "dep": [{"spec.selector.matchLabels": {"a": "c"}, "spec.template.metadata.labels": {"a": "c"}}, {"spec.replicas": 5}, {"spec.template.spec.containers.0.image": "j"}, {"spec.paused": True}],
    "sts": [{"spec.serviceName": "other"}, {"spec.replicas": 3}, {"spec.selector.matchLabels": {"a": "c"}, "spec.template.metadata.labels": {"a": "c"}}, {"spec.volumeClaimTemplates": []}],
    "ds": [{"spec.selector.matchLabels": {"a": "c"}, "spec.template.metadata.labels": {"a": "c"}}, {"spec.template.spec.containers.0.image": "j"}],
    "rs": [{"spec.selector.matchLabels": {"a": "c"}, "spec.template.metadata.labels": {"a": "c"}}, {"spec.replicas": 2}],
    "job": [{"spec.template.spec.containers.0.image": "j"}, {"spec.parallelism": 3}, {"spec.completions": 4}, {"spec.suspend": True}],
    "cj": [{"spec.schedule": "1 * * * *"}, {"spec.suspend": True}, {"spec.schedule": "x"}],
    "svc": [{"spec.clusterIP": "10.0.200.200"}, {"spec.type": "NodePort"}, {"spec.type": "ExternalName", "spec.externalName": "a.b"}, {"spec.ports.0.port": 81}, {"spec.clusterIP": "None"}],
    "pvc": [{"spec.resources.requests": {"storage": "2Gi"}}, {"spec.accessModes": ["ReadOnlyMany"]}, {"spec.resources.requests": {"storage": "1Mi"}}, {"spec.volumeName": "v"}],
    "cm": [{"immutable": True}, {"data": {"a": "1"}}], "sec": [{"type": "other"}, {"stringData": {"a": "1"}}, {"immutable": True}],
    "rb": [{"roleRef.name": "other"}, {"subjects": []}], "crb": [{"roleRef.name": "other"}], "ing": [{"spec.rules.0.host": "b.c"}, {"spec.rules": []}],
    "hpa": [{"spec.maxReplicas": 9}, {"spec.maxReplicas": 0}], "pdb": [{"spec.minAvailable": "50%"}, {"spec.selector": {"matchLabels": {"a": "c"}}}], "np": [{"spec.podSelector": {"matchLabels": {"a": "b"}}}],
    "ns": [{"metadata.labels": {"a": "b"}}, {"spec": {"finalizers": []}}], "lease": [{"spec.holderIdentity": "me"}], "sc": [{"provisioner": "other"}, {"reclaimPolicy": "Retain"}], "pc": [{"value": 6}], "rtc": [{"handler": "y"}],
}


def updates():
    """Changes of stored objects, allowed and not."""
    for kind, cases in UPDATES.items():
        path, base = BASE[kind]
        one = path + "/" + base["metadata"]["name"]
        for number, case in enumerate(cases):
            yield "%s-%d" % (kind, number), [step("POST", path, base), step("PUT", one, changed(base, case)), step("DELETE", one + "?gracePeriodSeconds=0")]


P = "/apis/apps/v1/namespaces/{ns}/deployments"
FULL = {"metadata": {"name": "a", "labels": {"l": "1"}, "finalizers": ["x.io/a", "x.io/b"]}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "strategy": {"rollingUpdate": {"maxSurge": 2}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {
    "containers": [{"name": "one", "image": "i:1", "ports": [{"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}], "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}], "args": ["x", "y"]}, {"name": "two", "image": "i:2"}],
    "volumes": [{"name": "v", "emptyDir": {}}, {"name": "w", "secret": {"secretName": "s"}}], "tolerations": [{"key": "k", "operator": "Exists"}], "nodeSelector": {"n": "1", "m": "2"}, "imagePullSecrets": [{"name": "p"}], "hostAliases": [{"ip": "1.2.3.4", "hostnames": ["h"]}]}}}}
T = {"spec": {"template": {"spec": None}}}


def in_pod(spec):
    return {"spec": {"template": {"spec": spec}}}


STRATEGIC = [
    in_pod({"containers": [{"name": "one", "image": "new"}]}), in_pod({"containers": [{"name": "three", "image": "i:3"}]}), in_pod({"containers": [{"name": "two", "$patch": "delete"}]}),
    in_pod({"containers": [{"$patch": "replace"}, {"name": "only", "image": "x"}]}), in_pod({"$setElementOrder/containers": [{"name": "two"}, {"name": "one"}], "containers": [{"name": "one", "image": "z"}]}),
    in_pod({"$setElementOrder/containers": [{"name": "two"}, {"name": "one"}]}), in_pod({"$setElementOrder/containers": [{"name": "two"}], "containers": [{"name": "one", "image": "z"}]}),
    in_pod({"containers": [{"name": "one", "env": [{"name": "B", "$patch": "delete"}, {"name": "C", "value": "3"}]}]}), in_pod({"containers": [{"name": "one", "ports": [{"containerPort": 80, "name": "web"}]}]}),
    in_pod({"containers": [{"name": "one", "args": ["z"]}]}), in_pod({"containers": [{"name": "one", "args": None, "env": None}]}), in_pod({"containers": [{"image": "nameless"}]}), in_pod({"containers": [{"name": "one", "$patch": "bogus"}]}),
    in_pod({"containers": [{"name": "one", "$patch": "merge"}]}), in_pod({"volumes": [{"name": "v", "$retainKeys": ["name", "configMap"], "configMap": {"name": "c"}}]}), in_pod({"volumes": [{"name": "v", "configMap": {"name": "c"}}]}),
    in_pod({"volumes": [{"name": "v", "$retainKeys": ["name"], "configMap": {"name": "c"}}]}), in_pod({"tolerations": [{"key": "other", "operator": "Exists"}]}), in_pod({"nodeSelector": {"n": None, "o": "3"}}), in_pod({"nodeSelector": {"$patch": "replace", "o": "3"}}),
    in_pod({"nodeSelector": {"$patch": "delete"}}), in_pod({"nodeSelector": None}), in_pod({"imagePullSecrets": [{"name": "q"}]}), in_pod({"hostAliases": [{"ip": "1.2.3.4", "hostnames": ["g"]}]}), in_pod({"$patch": "replace", "containers": [{"name": "n", "image": "m"}]}),
    {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}, {"spec": {"strategy": {"type": "Recreate"}}}, {"spec": {"strategy": {"type": "Recreate", "rollingUpdate": None}}}, {"spec": {"replicas": None}}, {"spec": {"replicas": "x"}}, {"spec": {"replicas": 7, "bogus": {"a": None}}},
    {"metadata": {"finalizers": ["x.io/c"]}}, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["x.io/a"]}}, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["x.io/a"], "$setElementOrder/finalizers": ["x.io/c", "x.io/b"], "finalizers": ["x.io/c"]}},
    {"metadata": {"finalizers": None}}, {"metadata": {"labels": {"$patch": "replace", "n": "1"}}}, {"metadata": {"labels": None}}, {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u1"}]}}, {"$patch": "delete"}, {"spec": "x"}, {"spec": {"template": []}},
    {"metadata": {"$setElementOrder/finalizers": "x"}}, {"metadata": {"$retainKeys": "x"}}, {"$setElementOrder": [1]}, {"metadata": {"$deleteFromPrimitiveList": ["x"]}}, {"metadata": {"annotations": {"a": "b", "c": None}}}, {"spec": {"selector": {"matchLabels": {"x": "y"}}}},
]
JSON = [
    [], [{"op": "replace", "path": "/spec/replicas", "value": 3}], [{"op": "add", "path": "/spec/template/spec/containers/-", "value": {"name": "x", "image": "y"}}], [{"op": "add", "path": "/spec/template/spec/containers/0", "value": {"name": "x", "image": "y"}}],
    [{"op": "remove", "path": "/spec/template/spec/containers/1"}], [{"op": "remove", "path": "/spec/template/spec/containers/9"}], [{"op": "move", "from": "/metadata/labels/l", "path": "/metadata/labels/k"}], [{"op": "copy", "from": "/metadata/labels/l", "path": "/metadata/labels/k"}],
    [{"op": "test", "path": "/spec/replicas", "value": 1}], [{"op": "test", "path": "/spec/replicas", "value": 2}], [{"op": "test", "path": "/spec/bogus", "value": None}], [{"op": "bogus", "path": "/a"}], [{"op": "add", "path": "/spec/none/x", "value": 1}],
    [{"op": "replace", "path": "/spec/replicas", "value": "x"}], [{"op": "replace", "path": "/metadata/name", "value": "other"}], [{"op": "add", "path": "/metadata/annotations", "value": {"a~b": "c", "d/e": "f"}}, {"op": "remove", "path": "/metadata/annotations/d~1e"}], [{"op": "replace", "path": "/metadata/uid", "value": "x"}],
    [{"op": "replace", "path": "/metadata/resourceVersion", "value": "1"}], [{"op": "remove", "path": "/spec/template/spec/containers/-1"}], {"op": "add"}, "x", [1], [{"op": "replace", "path": "/kind", "value": "Other"}], [{"op": "remove", "path": "/spec/selector"}], [{"op": "add", "path": "/status", "value": {"replicas": 5}}],
]
MERGE = [
    {}, {"spec": {"replicas": 4}}, {"spec": {"replicas": None}}, {"spec": {"template": {"spec": {"containers": [{"name": "n", "image": "m"}]}}}}, {"metadata": {"labels": None}}, {"metadata": {"labels": {"l": None, "m": "2"}}}, {"spec": None}, {"metadata": {"name": "other"}}, {"kind": "Other"}, {"status": {"replicas": 5}},
    {"spec": {"template": {"spec": {"containers": []}}}}, {"bogus": 1}, [], "x", {"metadata": {"resourceVersion": "1"}}, {"metadata": {"uid": "x"}}, {"metadata": {"generation": 99}}, {"metadata": {"creationTimestamp": "2020-01-01T00:00:00Z"}}, {"metadata": {"managedFields": []}}, {"metadata": {"managedFields": [{}]}},
    {"metadata": {"deletionTimestamp": "2020-01-01T00:00:00Z"}}, {"spec": {"strategy": {"type": "Recreate"}}}, {"spec": {"strategy": {"type": "Recreate", "rollingUpdate": None}}}, {"metadata": {"annotations": {"a": None}}},
]


def patches():
    """Patches of a deployment, one script each."""
    for kind, all_patches in (("strategic", STRATEGIC), ("json", JSON), ("merge", MERGE)):
        for number, patch in enumerate(all_patches):
            yield "%s-%02d" % (kind, number), [step("POST", P, FULL), step("PATCH", P + "/a?fieldManager=patcher", json.dumps(patch) if isinstance(patch, str) else patch, kind)]


def applied(manager, spec, meta=None, force=False):
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": dict({"name": "a"}, **(meta or {})), "spec": spec}
    return step("PATCH", P + "/a?fieldManager=%s%s" % (manager, "&force=true" if force else ""), body, "apply")


MINIMAL = {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}


def with_containers(*containers, **more):
    return {"template": {"spec": dict({"containers": list(containers)}, **more)}}


def ownership():
    """Server-side apply of deployments: lists, conflicts, transfers."""
    c = lambda name, **more: dict({"name": name}, **more)
    start = applied("one", MINIMAL)
    yield "add-container", [start, applied("two", with_containers(c("d", image="j"))), applied("two", {})]
    yield "share-container", [start, applied("two", with_containers(c("c", env=[{"name": "A", "value": "1"}]))), applied("two", with_containers(c("c", env=[]))), applied("two", {})]
    yield "conflict-image", [start, applied("two", with_containers(c("c", image="j"))), applied("two", with_containers(c("c", image="j")), force=True), applied("one", MINIMAL)]
    yield "same-value", [start, applied("two", with_containers(c("c", image="i"))), applied("one", dict(MINIMAL, replicas=2)), applied("two", with_containers(c("c", image="k")))]
    yield "update-takes", [start, step("PATCH", P + "/a?fieldManager=up", {"spec": {"replicas": 3}}, "merge"), applied("one", dict(MINIMAL, replicas=2)), applied("one", dict(MINIMAL, replicas=2), force=True), applied("one", MINIMAL)]
    yield "give-up", [applied("one", dict(MINIMAL, replicas=5)), applied("one", MINIMAL)]
    yield "give-up-shared", [applied("one", dict(MINIMAL, replicas=5)), applied("two", {"replicas": 5}), applied("one", MINIMAL), applied("two", {})]
    yield "create-then-apply", [step("POST", P + "?fieldManager=maker", {"metadata": {"name": "a"}, "spec": MINIMAL}), applied("one", MINIMAL), applied("one", dict(MINIMAL, replicas=2))]
    yield "ports", [applied("one", dict(MINIMAL, template={"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [c("c", image="i", ports=[{"containerPort": 80}])]}})), applied("two", with_containers(c("c", ports=[{"containerPort": 80, "protocol": "UDP"}]))),
                    applied("two", with_containers(c("c", ports=[{"containerPort": 80, "protocol": "TCP", "name": "web"}]))), applied("two", with_containers(c("c", ports=[{"containerPort": 80}, {"containerPort": 80}])))]
    yield "atomic-lists", [start, applied("two", with_containers(c("c", args=["a"]))), applied("one", dict(MINIMAL, template={"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [c("c", image="i", args=["b"])]}})), applied("two", with_containers(c("c", args=["z"])), force=True)]
    yield "atomic-maps", [start, applied("two", {"template": {"spec": {"nodeSelector": {"x": "1"}}}}), applied("one", dict(MINIMAL, template={"metadata": {"labels": {"a": "b"}}, "spec": {"nodeSelector": {"y": "1"}, "containers": [c("c", image="i")]}}))]
    yield "selector-conflict", [start, applied("two", {"selector": {"matchLabels": {"a": "c"}}})]
    yield "labels", [applied("one", MINIMAL, {"labels": {"a": "1", "b": "1"}}), applied("two", {}, {"labels": {"b": "2", "c": "2"}}), applied("two", {}, {"labels": {"c": "2"}}), applied("one", MINIMAL, {"labels": {"b": "1"}}), applied("one", MINIMAL)]
    yield "finalizers", [applied("one", MINIMAL, {"finalizers": ["x.io/a"]}), applied("two", {}, {"finalizers": ["x.io/b"]}), applied("one", MINIMAL), applied("two", {})]
    yield "owners", [applied("one", MINIMAL, {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u1"}]}), applied("two", {}, {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "q", "uid": "u2"}]}), applied("one", MINIMAL)]
    yield "order", [applied("one", dict(MINIMAL, template={"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [c("x", image="i"), c("y", image="i"), c("z", image="i")]}})), applied("two", with_containers(c("z"), c("new", image="i"), c("x"))), applied("one", dict(MINIMAL, template={"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [c("z", image="i"), c("x", image="i")]}}))]
    yield "nulls", [start, applied("two", {"replicas": None}), applied("two", {"template": {"metadata": None}})]
    yield "wrong-version", [start, step("PATCH", P + "/a?fieldManager=one", {"apiVersion": "apps/v2", "kind": "Deployment", "metadata": {"name": "a"}}, "apply"), step("PATCH", P + "/a?fieldManager=one", {"kind": "Deployment", "metadata": {"name": "a"}}, "apply")]
    yield "managed-in-body", [start, applied("one", MINIMAL, {"managedFields": [{"manager": "x"}]})]
    yield "wrong-name", [start, step("PATCH", P + "/a?fieldManager=one", {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "b"}}, "apply")]
    yield "status", [start, step("PATCH", P + "/a/status?fieldManager=s", {"apiVersion": "apps/v1", "kind": "Deployment", "status": {"replicas": 3}}, "apply"), step("PATCH", P + "/a/status?fieldManager=s", {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "status": {"replicas": 3, "conditions": [{"type": "X", "status": "True"}]}}, "apply"), applied("one", dict(MINIMAL, replicas=2))]
    S = P + "/a/scale?fieldManager="
    scaled = lambda manager, spec, query="", **more: step("PATCH", S + manager + query, dict({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "a"}, "spec": spec}, **more), "apply")
    own, seen = applied("one", dict(MINIMAL, replicas=2)), step("GET", P + "/a")
    yield "scale-patched", [own] + [more for body, kind in (({"spec": {"replicas": 3}}, "merge"), ([{"op": "replace", "path": "/spec/replicas", "value": 4}], "json"), ({"spec": {"replicas": 5}}, "strategic")) for more in (step("PATCH", S + "sc", body, kind), seen, own, applied("one", dict(MINIMAL, replicas=2), force=True), seen)]
    yield "scale-applied", [own, scaled("two", {"replicas": 3}), scaled("two", {"replicas": 3}, "&force=true"), seen, scaled("two", {"replicas": 4}), scaled("three", {"replicas": 4}), seen, own, scaled("three", {}), seen, step("PUT", S + "sc", {"metadata": {"name": "a"}, "spec": {"replicas": 5}}), seen, scaled("two", {"replicas": 6}), seen]
    yield "scale-applied-same", [own, scaled("two", {"replicas": 2}), seen, applied("one", MINIMAL), seen, scaled("two", {}), seen]
    yield "scale-applied-first", [start, scaled("two", {"replicas": 3}), seen, scaled("two", {"replicas": 3}, "&force=true"), seen]
    yield "scale-applied-wrong", [own, scaled("two", {"replicas": "x"}), scaled("two", {"replicas": 2, "bogus": 1}), scaled("two", {"replicas": -1}, "&force=true"), scaled("two", {"replicas": 2}, kind="Foo"), scaled("two", {"replicas": 2}, apiVersion="apps/v1"), scaled("two", {"replicas": 2}, metadata={"name": "b"})]
    yield "scale", [start, step("GET", P + "/a/scale"), step("PATCH", P + "/a/scale?fieldManager=sc", {"spec": {"replicas": 4}}, "merge"), step("GET", P + "/a"), applied("one", dict(MINIMAL, replicas=2)), step("PUT", P + "/a/scale", {"metadata": {"name": "a"}, "spec": {"replicas": -1}})]
    yield "kubectl", [step("POST", P + "?fieldManager=kubectl-client-side-apply", {"metadata": {"name": "a", "annotations": {"kubectl.kubernetes.io/last-applied-configuration": json.dumps({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": dict(MINIMAL, replicas=2)})}}, "spec": dict(MINIMAL, replicas=2)}), applied("kubectl", dict(MINIMAL, replicas=3)), applied("kubectl", MINIMAL)]
    yield "services", [step("PATCH", "/api/v1/namespaces/{ns}/services/a?fieldManager=" + m, {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": {"ports": p}}, "apply") for m, p in (("one", [{"port": 80}]), ("two", [{"port": 81, "name": "x"}]), ("two", [{"port": 80, "protocol": "UDP", "name": "u"}]), ("one", [{"port": 80, "name": "n"}]))]
    yield "many-updaters", [start] + [step("PATCH", P + "/a?fieldManager=m%02d" % n, {"metadata": {"labels": {"l%02d" % n: "1"}}}, "merge") for n in range(12)]
    yield "no-manager", [step("PATCH", P + "/a", {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}}, "apply"), step("PATCH", P + "/a?fieldManager=" + "x" * 129, {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}}, "apply"), step("PATCH", P + "/a?force=true", {}, "merge")]
    yield "yaml", [step("PATCH", P + "/a?fieldManager=one", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec:\n  selector: {matchLabels: {a: b}}\n  template:\n    metadata: {labels: {a: b}}\n    spec: {containers: [{name: c, image: i}]}\n", "apply"), step("PATCH", P + "/a?fieldManager=one", "a: [", "apply")]


G = "/apis/{u}.io/v1/namespaces/{ns}/foos"


def definition(schema, **more):
    version = dict({"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": schema, "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}}}, **more)
    return step("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {"metadata": {"name": "foos.{u}.io"}, "spec": {"group": "{u}.io", "scope": "Namespaced", "names": {"plural": "foos", "kind": "Foo", "shortNames": ["fo"], "categories": ["all"]}, "versions": [version]}})


def foo(spec, **meta):
    return {"apiVersion": "{u}.io/v1", "kind": "Foo", "metadata": dict({"name": "a"}, **meta), "spec": spec}


CR_SCHEMA = {"type": "object", "required": ["need"], "properties": {
    "need": {"type": "string"}, "s": {"type": "string", "minLength": 2, "maxLength": 3, "pattern": "^a+$"}, "i": {"type": "integer", "minimum": 1, "maximum": 3}, "n": {"type": "number", "multipleOf": 0.5}, "b": {"type": "boolean"}, "e": {"type": "string", "enum": ["x", "y"]},
    "l": {"type": "array", "minItems": 1, "maxItems": 2, "items": {"type": "string"}}, "m": {"type": "object", "maxProperties": 2, "additionalProperties": {"type": "string"}}, "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
    "lm": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": {"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}, "v": {"type": "integer", "default": 7}}}}, "ios": {"x-kubernetes-int-or-string": True},
    "any": {"x-kubernetes-preserve-unknown-fields": True}, "nul": {"type": "string", "nullable": True}, "d": {"type": "string", "default": "def"}, "dd": {"type": "object", "default": {}, "properties": {"x": {"type": "integer", "default": 5}}}, "dt": {"type": "string", "format": "date-time"}, "replicas": {"type": "integer"},
    "one": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}, "emb": {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}}}
CR_VALUES = [{}, {"s": 1}, {"s": "b"}, {"s": "aaaa"}, {"i": 0}, {"i": 4}, {"i": 1.5}, {"n": 0.3}, {"b": "x"}, {"e": "z"}, {"l": []}, {"l": ["a", "b", "c"]}, {"l": [1]}, {"m": {"a": 1}}, {"m": {"a": "1", "b": "1", "c": "1"}}, {"set": ["a", "a"]}, {"lm": [{"k": "a"}, {"k": "a"}]}, {"lm": [{}]}, {"lm": [{"k": "a", "z": 1}]},
             {"ios": True}, {"ios": "5"}, {"any": {"a": {"b": 1}}}, {"nul": None}, {"d": None}, {"need": None}, {"dd": {}}, {"dt": "x"}, {"one": {}}, {"one": {"a": "1", "b": "2"}}, {"emb": {}}, {"emb": {"apiVersion": "v1", "kind": "X", "metadata": {"name": "a", "foo": 1}}}, {"unknown": 1, "other": {"a": 1}}]


def custom():
    """Custom resources: schemas, defaults, subresources, columns, apply."""
    wait = [step("WAIT", "/apis/{u}.io/v1")]
    for number, values in enumerate(CR_VALUES):
        yield "value-%02d" % number, [definition(CR_SCHEMA)] + wait + [step("POST", G, foo(dict({"need": "x"}, **values))), step("GET", G + "/a")]
    columns = [{"name": "Need", "type": "string", "jsonPath": ".spec.need"}, {"name": "I", "type": "integer", "jsonPath": ".spec.i", "priority": 1}, {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}]
    yield "columns", [definition(CR_SCHEMA, additionalPrinterColumns=columns)] + wait + [step("POST", G, foo({"need": "x", "i": 2})), step("GET", G + "/a", accept="table"), step("GET", G, accept="table"), step("GET", G + "/a", accept="partial")]
    yield "plain-table", [definition(CR_SCHEMA)] + wait + [step("POST", G, foo({"need": "x"})), step("GET", G, accept="table")]
    status = dict(subresources={"status": {}})
    yield "status", [definition(CR_SCHEMA, **status)] + wait + [step("POST", G, dict(foo({"need": "x"}), status={"a": 1})), step("PATCH", G + "/a/status", {"status": {"a": 2}, "spec": {"need": "y"}}, "merge"), step("PATCH", G + "/a", {"status": {"a": 3}, "spec": {"need": "z"}}, "merge"), step("PUT", G + "/a/status", dict(foo({"need": "q"}, resourceVersion="{rv:4}"), status={"b": 1})), step("GET", G + "/a")]
    yield "no-status", [definition(CR_SCHEMA)] + wait + [step("POST", G, dict(foo({"need": "x"}), status={"a": 1})), step("PATCH", G + "/a/status", {"status": {"a": 2}}, "merge"), step("PATCH", G + "/a", {"status": {"a": 3}}, "merge")]
    scale = dict(subresources={"status": {}, "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}})
    yield "scale", [definition(CR_SCHEMA, **scale)] + wait + [step("POST", G, foo({"need": "x", "replicas": 2})), step("GET", G + "/a/scale"), step("PATCH", G + "/a/scale", {"spec": {"replicas": 5}}, "merge"), step("GET", G + "/a")]
    yield "apply", [definition(CR_SCHEMA)] + wait + [step("PATCH", G + "/a?fieldManager=" + m, foo(v), "apply") for m, v in (("one", {"need": "x", "lm": [{"k": "a", "v": 1}], "set": ["s"]}), ("two", {"need": "x", "lm": [{"k": "b"}], "set": ["t"]}), ("two", {"need": "y"}), ("one", {"need": "x"}), ("two", {"need": "x", "l": ["a"], "m": {"q": "1"}}))]
    yield "patches", [definition(CR_SCHEMA)] + wait + [step("POST", G, foo({"need": "x", "l": ["a"]})), step("PATCH", G + "/a", {"spec": {"i": 2}}, "merge"), step("PATCH", G + "/a", [{"op": "add", "path": "/spec/l/-", "value": "b"}], "json"), step("PATCH", G + "/a", {"spec": {"i": 3}}, "strategic"), step("PATCH", G + "/a", {"spec": {"i": 9}}, "merge"), step("PUT", G + "/a", foo({"need": "q"})), step("PUT", G + "/a", foo({"need": "q"}, resourceVersion="{rv:4}"))]
    yield "strict", [definition(CR_SCHEMA)] + wait + [step("POST", G + "?fieldValidation=" + v, foo({"need": "x", "zz": 1, "lm": [{"k": "a", "q": 1}]}, name=v.lower(), bogus=1)) for v in ("Strict", "Warn", "Ignore")]
    yield "wrong", [definition(CR_SCHEMA)] + wait + [step("POST", G, b) for b in ({"apiVersion": "{u}.io/v2", "kind": "Foo", "metadata": {"name": "a"}}, {"apiVersion": "{u}.io/v1", "kind": "Bar", "metadata": {"name": "a"}}, {"kind": "Foo", "metadata": {"name": "a"}}, {"metadata": {"name": "a"}}, "{", "[]", foo({"need": "x"}, name="A_"), foo({"need": "x"}, labels={"a": 1}), {"apiVersion": "{u}.io/v1", "kind": "Foo", "metadata": {"name": "a"}, "spec": "x"})]
    yield "discovery", [definition(CR_SCHEMA, **scale)] + wait + [step("GET", "/apis/{u}.io"), step("GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/foos.{u}.io"), step("DELETE", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/foos.{u}.io")]


CM = "/api/v1/namespaces/{ns}/configmaps"


def cm(name, **more):
    return step("POST", CM, dict({"metadata": dict({"name": name}, **more.pop("meta", {}))}, **more))


def requests():
    """Reading, selecting, paging, watching, deleting, and requests that make no sense."""
    three = [cm("a", meta={"labels": {"x": "1", "y": "1"}}), cm("b", meta={"labels": {"x": "2"}}), cm("c")]
    for number, selector in enumerate(["x", "!x", "x=1", "x==1", "x!=1", "x in (1,2)", "x notin (1)", "x,y", "x=1,y!=1", "x>1", "x<2", "x in ()", "x=", "=1", "x in 1", "x,,y", "a b", "x=1 2"]):
        yield "labels-%02d" % number, three + [step("GET", CM + "?labelSelector=" + selector.replace(" ", "%20").replace("=", "%3D").replace("!", "%21").replace(",", "%2C"))]
    for number, selector in enumerate(["metadata.name=a", "metadata.name!=a", "metadata.name=a,metadata.namespace={ns}", "data.x=1", "metadata.name", "=a", "metadata.name=a,,"]):
        yield "fields-%02d" % number, three + [step("GET", CM + "?fieldSelector=" + selector.replace("=", "%3D").replace("!", "%21").replace(",", "%2C"))]
    yield "pages", three + [step("GET", CM + "?limit=2"), step("GET", CM + "?limit=2&continue={continue:3}"), step("GET", CM + "?limit=2&continue=bogus"), step("GET", CM + "?limit=x"), step("GET", CM + "?limit=-1"), step("GET", CM + "?continue={continue:3}&resourceVersion=1")]
    yield "versions", three + [step("GET", CM + "?resourceVersion=0"), step("GET", CM + "?resourceVersion=x"), step("GET", CM + "?resourceVersion={rv:0}&resourceVersionMatch=NotOlderThan"), step("GET", CM + "?resourceVersionMatch=Exact"), step("GET", CM + "?resourceVersion=0&resourceVersionMatch=Exact"), step("GET", CM + "?resourceVersion={rv:2}&resourceVersionMatch=Bogus"), step("GET", CM + "/a?resourceVersion=0"), step("GET", CM + "?resourceVersion=9999999999")]
    yield "partial-lists", three + [step("GET", CM, accept="partials"), step("GET", CM, accept="table"), step("GET", CM + "?includeObject=None", accept="table"), step("GET", CM + "?includeObject=Object", accept="table"), step("GET", CM + "?includeObject=Bogus", accept="table"), step("GET", CM, accept="application/xml")]
    watch = "?watch=true&timeoutSeconds=1&resourceVersion={rv:%d}"
    yield "watch", [cm("a", data={"k": "1"}), step("PATCH", CM + "/a", {"data": {"k": "2"}}, "merge"), cm("b"), step("DELETE", CM + "/a"), step("GET", CM + watch % 0)]
    yield "watch-labels", [cm("a"), step("PATCH", CM + "/a", {"metadata": {"labels": {"x": "1"}}}, "merge"), step("PATCH", CM + "/a", {"data": {"k": "2"}}, "merge"), step("PATCH", CM + "/a", {"metadata": {"labels": None}}, "merge"), step("GET", CM + watch % 0 + "&labelSelector=x")]
    yield "watch-fields", [cm("a"), cm("b"), step("DELETE", CM + "/b"), step("GET", CM + watch % 0 + "&fieldSelector=metadata.name%3Db")]
    yield "watch-table", [cm("a"), cm("b"), step("GET", CM + watch % 0, accept="table"), step("GET", CM + watch % 0, accept="partial")]
    yield "watch-from-zero", [cm("a"), step("GET", CM + "?watch=true&timeoutSeconds=1&fieldSelector=metadata.name%3Da"), step("GET", CM + "?watch=true&timeoutSeconds=1&resourceVersion=0&fieldSelector=metadata.name%3Da"), step("GET", CM + "?watch=true&timeoutSeconds=1&resourceVersion=x"), step("GET", CM + "?watch=true&timeoutSeconds=1&resourceVersionMatch=NotOlderThan")]
    yield "watch-initial", [cm("a"), step("GET", CM + "?watch=true&timeoutSeconds=1&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&fieldSelector=metadata.name%3Da"), step("GET", CM + "?watch=true&timeoutSeconds=1&sendInitialEvents=true"), step("GET", CM + "?sendInitialEvents=true")]
    yield "finalizers", [cm("a", meta={"finalizers": ["x.io/y"]}), step("DELETE", CM + "/a"), step("GET", CM + "/a"), step("PATCH", CM + "/a", {"metadata": {"finalizers": ["x.io/y", "x.io/z"]}}, "merge"), step("PATCH", CM + "/a", {"data": {"a": "b"}}, "merge"), step("PATCH", CM + "/a", {"metadata": {"finalizers": None}}, "merge"), step("GET", CM + "/a")]
    yield "orphan", [cm("a"), step("DELETE", CM + "/a", {"propagationPolicy": "Orphan"}), step("GET", CM + "/a"), cm("b"), step("DELETE", CM + "/b", {"propagationPolicy": "Foreground"}), step("GET", CM + "/b")]
    yield "preconditions", [cm("a"), step("DELETE", CM + "/a", {"preconditions": {"resourceVersion": "1"}}), step("DELETE", CM + "/a", {"preconditions": {"uid": "x"}}), step("DELETE", CM + "/a", {"preconditions": {"resourceVersion": "{rv:0}", "uid": "{uid:0}"}})]
    yield "delete-options", [cm("a"), step("DELETE", CM + "/a?propagationPolicy=Bogus"), step("DELETE", CM + "/a", {"propagationPolicy": "Background", "orphanDependents": True}), step("DELETE", CM + "/a?gracePeriodSeconds=x"), step("DELETE", CM + "/a?dryRun=Bogus"), step("DELETE", CM + "/a", "{")]
    yield "delete-many", three + [step("DELETE", CM + "?labelSelector=x"), step("GET", CM), step("DELETE", CM), step("GET", CM)]
    pods = BASE["pod"][0]
    yield "pod-grace", [step("POST", pods, BASE["pod"][1]), step("DELETE", pods + "/a"), step("GET", pods + "/a")]
    yield "pod-status", [step("POST", pods, BASE["pod"][1]), step("PATCH", pods + "/a/status", {"status": {"phase": "Running", "podIP": "1.2.3.4"}}, "merge"), step("GET", pods + "/a", accept="table"), step("GET", pods + "?fieldSelector=status.phase%3DRunning"), step("PATCH", pods + "/a", {"status": {"phase": "Failed"}}, "merge")]
    yield "pod-binding", [step("POST", pods, BASE["pod"][1]), step("POST", pods + "/a/binding", {"target": {"kind": "Node", "name": "n"}}), step("GET", pods + "/a"), step("POST", pods + "/a/binding", {"target": {"kind": "Node", "name": "m"}})]
    yield "pod-eviction", [step("POST", pods, BASE["pod"][1]), step("POST", pods + "/a/eviction", {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}}), step("GET", pods + "/a")]
    yield "absent", [step("GET", "/api/v1/namespaces/{ns}/bogus"), step("GET", "/apis/bogus"), step("GET", "/apis/apps/v9"), step("GET", "/apis/apps/v1/namespaces/{ns}/bogus/x"), step("GET", "/bogus"), step("POST", "/apis/apps/v1/namespaces/{ns}/deployments/a", {}), step("PUT", CM, {}), step("PATCH", CM, {}, "merge"), step("GET", CM + "/none"), step("DELETE", CM + "/none"), step("PATCH", CM + "/none", {}, "merge"), step("GET", CM + "/a/bogus")]
    yield "no-namespace", [step("POST", "/api/v1/namespaces/{u}none/configmaps", {"metadata": {"name": "a"}}), step("GET", "/api/v1/namespaces/{u}none/configmaps"), step("GET", "/api/v1/namespaces/{u}none"), step("DELETE", "/api/v1/namespaces/{u}none")]
    yield "media-types", [step("POST", CM, "x", "text/plain"), step("POST", CM, "metadata: {name: a}\n", "yaml"), step("POST", CM, "metadata: {name: a\n", "yaml"), step("PATCH", CM + "/a", {}, "application/json"), step("PATCH", CM + "/a", {}, "text/plain"), step("POST", CM, "metadata:\n  name: b\nfoo: 1\nfoo: 2\n", "yaml")]
    yield "field-options", [step("POST", CM + "?fieldValidation=Bogus", {"metadata": {"name": "a"}}), step("POST", CM + "?dryRun=Bogus", {"metadata": {"name": "a"}}), step("POST", CM + "?fieldManager=" + "x" * 129, {"metadata": {"name": "a"}}), step("PUT", CM + "/a?dryRun=x", {"metadata": {"name": "a"}})]
    yield "discovery", [step("GET", "/api"), step("GET", "/apis/apps"), step("GET", "/apis/apps/v1"), step("GET", "/apis/autoscaling"), step("GET", "/apis/policy/v1"), step("GET", "/apis/batch/v1"), step("GET", "/apis/rbac.authorization.k8s.io/v1")]
    yield "namespaces", [step("POST", "/api/v1/namespaces", {"metadata": {"name": "{u}"}}), step("DELETE", "/api/v1/namespaces/{u}"), step("GET", "/api/v1/namespaces/{u}"), step("POST", "/api/v1/namespaces/{u}/configmaps", {"metadata": {"name": "a"}}), step("PUT", "/api/v1/namespaces/{u}/finalize", {"metadata": {"name": "{u}"}, "spec": {"finalizers": []}}), step("GET", "/api/v1/namespaces/{u}")]
    yield "immutable", [cm("a", data={"k": "1"}, immutable=True), step("PATCH", CM + "/a", {"data": {"k": "2"}}, "merge"), step("PATCH", CM + "/a", {"immutable": False}, "merge"), step("PATCH", CM + "/a", {"metadata": {"labels": {"a": "b"}}}, "merge")]
    yield "generate-name", [step("POST", CM, {"metadata": {"generateName": "x-"}}), step("POST", CM, {"metadata": {"generateName": "y" * 250}}), step("POST", CM, {"metadata": {"generateName": "A_"}})]
    yield "reviews", [step("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}}), step("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {})]
    yield "events-two-groups", [step("POST", "/api/v1/namespaces/{ns}/events", BASE["ev"][1]), step("GET", "/apis/events.k8s.io/v1/namespaces/{ns}/events/a"), step("POST", BASE["ev1"][0], changed(BASE["ev1"][1], {"metadata.name": "b"})), step("GET", "/api/v1/namespaces/{ns}/events/b")]
    yield "autoscalers-two-versions", [step("POST", BASE["hpa1"][0], BASE["hpa1"][1]), step("GET", BASE["hpa"][0] + "/a"), step("POST", BASE["hpa"][0], changed(BASE["hpa"][1], {"metadata.name": "b", "spec.metrics": [{"type": "Resource", "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}}}]})), step("GET", BASE["hpa1"][0] + "/b")]


def random_spec(rng):
    spec = {}
    if rng.random() < 0.4:
        spec["replicas"] = rng.randint(0, 5)
    if rng.random() < 0.2:
        spec["paused"] = rng.random() < 0.5
    if rng.random() < 0.2:
        spec["minReadySeconds"] = rng.randint(0, 3)
    pod = {}
    if rng.random() < 0.3:
        pod["nodeSelector"] = {rng.choice("mno"): rng.choice("12") for _ in range(rng.randint(0, 2))}
    if rng.random() < 0.3:
        pod["tolerations"] = [{"key": rng.choice("kl"), "operator": "Exists"} for _ in range(rng.randint(0, 2))]
    if rng.random() < 0.3:
        pod["volumes"] = [{"name": n, "emptyDir": {}} for n in rng.sample("vwx", rng.randint(0, 2))]
    containers = []
    for name in rng.sample(["c", "d", "e"], rng.randint(0, 3)):
        container = {"name": name}
        if rng.random() < 0.7:
            container["image"] = rng.choice(["i:1", "i:2", "i"])
        if rng.random() < 0.3:
            container["env"] = [{"name": n, "value": rng.choice("12")} for n in rng.sample("ABC", rng.randint(0, 3))]
        if rng.random() < 0.3:
            container["ports"] = [{"containerPort": p} for p in rng.sample([80, 81, 443], rng.randint(0, 2))]
        if rng.random() < 0.2:
            container["args"] = rng.sample(["x", "y", "z"], rng.randint(0, 2))
        containers.append(container)
    if containers:
        pod["containers"] = containers
    if pod:
        spec["template"] = {"spec": pod}
    return spec


def random_meta(rng):
    meta = {}
    if rng.random() < 0.4:
        meta["labels"] = {rng.choice("abc"): rng.choice("12") for _ in range(rng.randint(0, 3))}
    if rng.random() < 0.2:
        meta["annotations"] = {rng.choice("pq"): rng.choice("12")}
    if rng.random() < 0.2:
        meta["finalizers"] = rng.sample(["x.io/a", "x.io/b", "x.io/c"], rng.randint(0, 2))
    return meta


def nulled(rng, value):
    """Some keys become null: they are deleted."""
    if isinstance(value, dict):
        return {k: (None if k not in ("name", "template", "spec", "containerPort", "key", "operator", "value") and rng.random() < 0.15 else nulled(rng, v)) for k, v in value.items()}
    return [nulled(rng, v) for v in value] if isinstance(value, list) else value


def random_sequence(rng):
    """A deployment, then patches by three managers: strategic ones and applied ones."""
    steps = [step("POST", P + "?fieldManager=maker", {"metadata": {"name": "a"}, "spec": MINIMAL})]
    for _ in range(rng.randint(3, 7)):
        manager = rng.choice(["one", "two", "three"])
        if rng.random() < 0.5:
            patch = nulled(rng, {"metadata": random_meta(rng), "spec": random_spec(rng)})
            for container in patch["spec"].get("template", {}).get("spec", {}).get("containers") or []:
                if rng.random() < 0.1:
                    container["$patch"] = rng.choice(["delete", "replace"])
            steps.append(step("PATCH", P + "/a?fieldManager=" + manager, patch, "strategic"))
        else:
            steps.append(applied(manager, random_spec(rng), random_meta(rng), rng.random() < 0.4))
    return steps


STATUSES = {
    "ns": [{"phase": "Terminating"}, {"phase": "Bogus"}, {"phase": "Active"}, {"conditions": [{"type": "X", "status": "True"}]}],
    "dep": [{"replicas": -1}, {"readyReplicas": -1, "updatedReplicas": -2, "availableReplicas": -3, "unavailableReplicas": -4, "observedGeneration": -1}, {"replicas": 1, "readyReplicas": 2, "updatedReplicas": 2, "availableReplicas": 3}, {"replicas": 3, "updatedReplicas": 3, "readyReplicas": 2, "availableReplicas": 1}, {"collisionCount": -1}, {"collisionCount": 2}, {"terminatingReplicas": -1}, {"replicas": 1, "conditions": [{"type": "", "status": "x"}]}],
    "rs": [{"replicas": -1}, {"replicas": 1, "fullyLabeledReplicas": 2, "readyReplicas": 2, "availableReplicas": 2}, {"replicas": 2, "readyReplicas": 1, "availableReplicas": 2}, {"replicas": 0, "observedGeneration": -1, "fullyLabeledReplicas": -1, "readyReplicas": -1, "availableReplicas": -1}, {"replicas": 2, "readyReplicas": 2}],
    "rc": [{"replicas": -1}, {"replicas": 1, "fullyLabeledReplicas": 2, "readyReplicas": 2, "availableReplicas": 2}, {"replicas": 2, "readyReplicas": 1, "availableReplicas": 2}],
    "sts": [{"replicas": -1}, {"replicas": 1, "readyReplicas": 2, "currentReplicas": 2, "updatedReplicas": 2, "availableReplicas": 2}, {"replicas": 3, "readyReplicas": 1, "availableReplicas": 2}, {"replicas": 0, "observedGeneration": -1, "readyReplicas": -1, "currentReplicas": -1, "updatedReplicas": -1, "availableReplicas": -1, "collisionCount": -1}, {"replicas": 1, "currentRevision": "x", "updateRevision": "y", "collisionCount": 1}],
    "ds": [{"currentNumberScheduled": -1, "numberMisscheduled": -1, "desiredNumberScheduled": -1, "numberReady": -1}, {"currentNumberScheduled": 1, "numberMisscheduled": 0, "desiredNumberScheduled": 1, "numberReady": 1, "observedGeneration": -1, "updatedNumberScheduled": -1, "numberAvailable": -1, "numberUnavailable": -1, "collisionCount": -1}, {"currentNumberScheduled": 1, "numberMisscheduled": 0, "desiredNumberScheduled": 1, "numberReady": 1}],
    "job": [{"active": -1, "succeeded": -1, "failed": -1, "ready": -1, "terminating": -1}, {"active": 1, "ready": 2}, {"active": 1, "terminating": 1, "ready": 1}, {"startTime": "2020-01-01T00:00:00Z", "completionTime": "2019-01-01T00:00:00Z"}, {"completionTime": "2020-01-01T00:00:00Z"}, {"conditions": [{"type": "Complete", "status": "True"}]}, {"conditions": [{"type": "Complete", "status": "True"}, {"type": "Failed", "status": "True"}]}, {"startTime": "2020-01-01T00:00:00Z", "completionTime": "2020-01-02T00:00:00Z", "succeeded": 1, "conditions": [{"type": "SuccessCriteriaMet", "status": "True"}, {"type": "Complete", "status": "True"}]}, {"startTime": "2020-01-01T00:00:00Z", "completionTime": "2020-01-02T00:00:00Z", "conditions": [{"type": "FailureTarget", "status": "True"}, {"type": "Failed", "status": "True"}]}, {"startTime": "2020-01-01T00:00:00Z", "failed": 2, "conditions": [{"type": "FailureTarget", "status": "True", "reason": "BackoffLimitExceeded"}, {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}]}, {"active": 1, "startTime": "2020-01-01T00:00:00Z", "conditions": [{"type": "FailureTarget", "status": "True"}, {"type": "Failed", "status": "True"}]}, {"completedIndexes": "1-3"}, {"failedIndexes": "1"}, {"uncountedTerminatedPods": {"succeeded": ["a", "a"], "failed": ["a", ""]}}, {"uncountedTerminatedPods": {}}, {"conditions": [{"type": "Suspended", "status": "True"}]}, {"startTime": None}],
    "cj": [{"lastScheduleTime": "2020-01-01T00:00:00Z"}, {"active": [{"name": "x"}]}],
    "svc": [{"loadBalancer": {"ingress": [{"ip": "x"}]}}, {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}, {"loadBalancer": {"ingress": [{"hostname": "A_"}]}}, {"conditions": [{"type": "a b", "status": "x", "reason": "", "message": ""}]}, {"conditions": [{"type": "a", "status": "True", "reason": "Ok", "message": "", "lastTransitionTime": "2020-01-01T00:00:00Z"}]}],
    "ing": [{"loadBalancer": {"ingress": [{"ip": "x"}]}}, {"loadBalancer": {"ingress": [{"ip": "1.2.3.4", "hostname": "A_", "ports": [{"port": 0, "protocol": "X", "error": "a b"}]}]}}, {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}],
    "hpa": [{"currentReplicas": -1, "desiredReplicas": -1}, {"currentReplicas": 1, "desiredReplicas": 2, "conditions": [{"type": "X", "status": "True"}]}],
    "pdb": [{"disruptionsAllowed": -1, "currentHealthy": -1, "desiredHealthy": -1, "expectedPods": -1}, {"disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": 1, "expectedPods": 2}, {"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0, "conditions": [{"type": "", "status": "X", "reason": "a b"}]}],
    "pvc": [{"phase": "Bound"}, {"phase": "Bogus"}, {"accessModes": ["X"]}, {"capacity": {"storage": "-1"}}, {"capacity": {"storage": "1Gi"}, "phase": "Bound"}, {"allocatedResources": {"storage": "x"}}, {"allocatedResources": {"storage": "1Gi"}, "allocatedResourceStatuses": {"storage": "Bogus"}}, {"conditions": [{"type": "Resizing", "status": "True"}]}],
    "pv": [{"phase": "Bound"}, {"phase": "Bogus"}, {"reason": "x", "message": "y"}],
    "node": [{"capacity": {"cpu": "-1"}}, {"addresses": [{"type": "InternalIP", "address": "1.2.3.4"}, {"type": "InternalIP", "address": "1.2.3.4"}]}, {"conditions": [{"type": "Ready", "status": "True"}]}, {"phase": "Bogus"}, {"allocatable": {"cpu": "1.5", "pods": "1.5"}}],
    "pod": [{"phase": "Bogus"}, {"qosClass": "Bogus"}, {"hostIP": "x", "podIP": "y"}, {"podIPs": [{"ip": "1.2.3.4"}, {"ip": "1.2.3.5"}]}, {"podIPs": [{"ip": "x"}]}, {"nominatedNodeName": "A_"}, {"containerStatuses": [{"name": "none", "image": "i", "imageID": "", "ready": True, "restartCount": 0}]}, {"conditions": [{"type": "Ready", "status": "X"}]}, {"conditions": [{"type": "Ready", "status": "True"}]}, {"phase": "Running", "observedGeneration": -1}, {"resourceClaimStatuses": [{"name": "x", "resourceClaimName": "A_"}]}],
    "rq": [{"hard": {"pods": "-1"}}, {"hard": {"pods": "1"}, "used": {"pods": "1.5"}}, {"hard": {"pods": "1"}, "used": {"bogus": "1"}}, {"hard": {"pods": "1"}, "used": {"pods": "0"}}],
    "fs": [{"conditions": [{"type": "", "status": "X"}]}, {"conditions": [{"type": "Dangling", "status": "True", "reason": "R", "message": "m", "lastTransitionTime": "2020-01-01T00:00:00Z"}]}],
    "plc": [{"conditions": [{"type": "", "status": "X"}]}],
}


def statuses():
    """The status of built-in kinds, as controllers write it and as they should not."""
    for kind, cases in STATUSES.items():
        path, base = BASE[kind]
        one = path + "/" + base["metadata"]["name"]
        made = changed(base, {"spec.type": "LoadBalancer"}) if kind == "svc" else base
        for number, case in enumerate(cases):
            yield "%s-%d" % (kind, number), [step("POST", path, made), step("PATCH", one + "/status", {"status": case}, "merge"), step("PATCH", one + "/status", {"status": None}, "merge")]
    pods, path = BASE["pod"][0], BASE["dep"][0]
    held = changed(BASE["pod"][1], {"metadata.finalizers": ["x.io/y"], "spec.nodeName": "n"})
    end = lambda code: {"status": {"phase": "Running", "containerStatuses": [{"name": "c", "image": "i", "imageID": "", "ready": False, "restartCount": 0, "state": code}]}}
    yield "pod-ended", [step("POST", pods, changed(held, {"spec.restartPolicy": "Never"})), step("PATCH", pods + "/a/status", end({"terminated": {"exitCode": 0}}), "merge"), step("PATCH", pods + "/a/status", end({"running": {}}), "merge"), step("PATCH", pods + "/a/status", end({"terminated": {"exitCode": 1}}), "merge")]
    yield "pod-states", [step("POST", pods, held), step("PATCH", pods + "/a/status", end({"terminated": {"exitCode": 0}, "running": {}}), "merge"), step("PATCH", pods + "/a/status", end({"terminated": {"exitCode": 0}}), "merge"), step("PATCH", pods + "/a/status", end({"running": {}}), "merge")]
    yield "collisions", [step("POST", path, BASE["dep"][1]), step("PATCH", path + "/a/status", {"status": {"collisionCount": 3}}, "merge"), step("PATCH", path + "/a/status", {"status": {"collisionCount": 2}}, "merge"), step("PATCH", path + "/a/status", {"status": {"collisionCount": None}}, "merge")]
    yield "namespace-ends", [step("POST", "/api/v1/namespaces", {"metadata": {"name": "{u}", "finalizers": ["x.io/y"]}}), step("DELETE", "/api/v1/namespaces/{u}"), step("PATCH", "/api/v1/namespaces/{u}/status", {"status": {"phase": "Active"}}, "merge"), step("PATCH", "/api/v1/namespaces/{u}/status", {"status": {"phase": "Terminating"}}, "merge")]
    yield "certificates", [step("GET", "/apis/certificates.k8s.io/v1/certificatesigningrequests/none/status")]


def transitions():
    """Changes that are allowed at one time and not at another."""
    path, pod = BASE["pod"]
    tolerant = changed(pod, {"spec.tolerations": [{"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30}]})
    defaults = [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}, {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}]
    first = tolerant["spec"]["tolerations"]
    cases = {"added": first + defaults + [{"key": "b", "operator": "Exists"}], "removed": defaults, "none": None, "reordered": defaults + first, "changed": [dict(first[0], key="c")] + defaults, "seconds": [dict(first[0], tolerationSeconds=60)] + defaults, "no-seconds": [{"key": "a", "operator": "Exists", "effect": "NoExecute"}] + defaults,
             "seconds-default": first + [dict(defaults[0], tolerationSeconds=5), defaults[1]], "twice": first + first + defaults, "invalid": first + defaults + [{"key": "b", "operator": "Bogus"}]}
    for name, value in cases.items():
        yield "tolerations-" + name, [step("POST", path, tolerant), step("PATCH", path + "/a", {"spec": {"tolerations": value}}, "merge")]
    gated = changed(pod, {"spec.schedulingGates": [{"name": "g"}]})
    for name, spec in {"gates-removed": {"schedulingGates": None}, "gates-added": {"schedulingGates": [{"name": "g"}, {"name": "h"}]}, "gated-selector": {"nodeSelector": {"a": "b"}}, "gated-affinity": {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]}}}}, "gated-node": {"nodeName": "n"},
                       "grace": {"terminationGracePeriodSeconds": 1}, "deadline": {"activeDeadlineSeconds": 5}}.items():
        yield "pod-" + name, [step("POST", path, gated), step("PATCH", path + "/a", {"spec": spec}, "merge")]
    yield "pod-deadlines", [step("POST", path, changed(pod, {"spec.activeDeadlineSeconds": 10})), step("PATCH", path + "/a", {"spec": {"activeDeadlineSeconds": 20}}, "merge"), step("PATCH", path + "/a", {"spec": {"activeDeadlineSeconds": 5}}, "merge"), step("PATCH", path + "/a", {"spec": {"activeDeadlineSeconds": None}}, "merge")]
    yield "pod-negative-grace", [step("POST", path, changed(pod, {"spec.nodeName": "n"})), step("DELETE", path + "/a", {"gracePeriodSeconds": -1})]
    yield "pod-image", [step("POST", path, changed(pod, {"spec.initContainers": [{"name": "z", "image": "i"}]})), step("PATCH", path + "/a", [{"op": "replace", "path": "/spec/initContainers/0/image", "value": "j"}], "json"), step("PATCH", path + "/a", [{"op": "replace", "path": "/spec/containers/0/image", "value": ""}], "json"), step("PATCH", path + "/a", [{"op": "replace", "path": "/spec/containers/0/image", "value": " j"}], "json")]
    path, job = BASE["job"]
    template = "/spec/template/"
    edits = {"image": [{"op": "replace", "path": template + "spec/containers/0/image", "value": "j"}], "selector": [{"op": "add", "path": template + "spec/nodeSelector", "value": {"a": "b"}}], "tolerations": [{"op": "add", "path": template + "spec/tolerations", "value": [{"key": "a", "operator": "Exists"}]}], "labels": [{"op": "add", "path": template + "metadata/labels/x", "value": "y"}], "annotations": [{"op": "add", "path": template + "metadata/annotations", "value": {"x": "y"}}],
             "affinity": [{"op": "add", "path": template + "spec/affinity", "value": {"podAntiAffinity": {}}}], "gates": [{"op": "add", "path": template + "spec/schedulingGates", "value": [{"name": "g"}]}], "resources": [{"op": "add", "path": template + "spec/containers/0/resources", "value": {"limits": {"cpu": "1"}}}], "priority": [{"op": "add", "path": template + "spec/priority", "value": 0}],
             "completions": [{"op": "replace", "path": "/spec/completions", "value": 3}], "parallelism": [{"op": "replace", "path": "/spec/parallelism", "value": 3}], "mode": [{"op": "replace", "path": "/spec/completionMode", "value": "Indexed"}], "backoff": [{"op": "replace", "path": "/spec/backoffLimit", "value": 3}], "ttl": [{"op": "add", "path": "/spec/ttlSecondsAfterFinished", "value": 3}], "resume": [{"op": "replace", "path": "/spec/suspend", "value": False}], "policy": [{"op": "replace", "path": "/spec/podReplacementPolicy", "value": "Failed"}], "manager": [{"op": "add", "path": "/spec/managedBy", "value": "x.io/y"}]}
    for name, edit in edits.items():
        for state, suspend in (("suspended", True), ("running", False)):
            yield "job-%s-%s" % (name, state), [step("POST", path, changed(job, {"spec.suspend": suspend})), step("PATCH", path + "/a", edit, "json")]
    yield "job-begun", [step("POST", path, changed(job, {"spec.suspend": True})), step("PATCH", path + "/a/status", {"status": {"startTime": "2020-01-01T00:00:00Z"}}, "merge"), step("PATCH", path + "/a", edits["selector"], "json")]
    indexed = changed(job, {"spec.completionMode": "Indexed", "spec.completions": 2, "spec.parallelism": 2})
    yield "job-elastic", [step("POST", path, indexed), step("PATCH", path + "/a", {"spec": {"completions": 3, "parallelism": 3}}, "merge"), step("PATCH", path + "/a", {"spec": {"completions": 4}}, "merge")]
    path, claim = BASE["pvc"]
    bind = step("PATCH", path + "/a/status", {"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}}, "merge")
    for name, made, spec in (("nil-class", {}, {"storageClassName": "x"}), ("empty-class", {"spec.storageClassName": ""}, {"storageClassName": "x"}), ("class-gone", {"spec.storageClassName": "x"}, {"storageClassName": None}), ("other-class", {"spec.storageClassName": "x"}, {"storageClassName": "y"}), ("volume", {}, {"volumeName": "v"}), ("grow", {}, {"resources": {"requests": {"storage": "2Gi"}}}), ("mode", {}, {"volumeMode": "Block"}), ("selector", {}, {"selector": {"matchLabels": {"a": "b"}}}), ("attributes", {}, {"volumeAttributesClassName": "x"}), ("class-and-volume", {}, {"storageClassName": "x", "volumeName": "v"}), ("bad-class", {}, {"storageClassName": "A_"})):
        yield "claim-" + name, [step("POST", path, changed(claim, made)), step("PATCH", path + "/a", {"spec": spec}, "merge")]
        yield "claim-bound-" + name, [step("POST", path, changed(claim, made)), bind, step("PATCH", path + "/a", {"spec": spec}, "merge")]
    path, service = BASE["svc"]
    forms = {"cluster": {}, "headless": {"spec.clusterIP": "None"}, "node": {"spec.type": "NodePort"}, "balancer": {"spec.type": "LoadBalancer"}, "local": {"spec.type": "LoadBalancer", "spec.externalTrafficPolicy": "Local"}}
    for name, form in forms.items():
        yield "service-external-" + name, [step("POST", path, changed(service, form)), step("PATCH", path + "/a", {"spec": {"type": "ExternalName", "externalName": "a.b"}}, "merge"), step("PATCH", path + "/a", {"spec": {"type": "ClusterIP", "externalName": None}}, "merge")]
        yield "service-put-" + name, [step("POST", path, changed(service, form)), step("PUT", path + "/a", changed(service, {"spec.type": "ExternalName", "spec.externalName": "a.b"})), step("PUT", path + "/a", service)]
        for other in ("ClusterIP", "NodePort", "LoadBalancer"):
            yield "service-%s-%s" % (name, other.lower()), [step("POST", path, changed(service, form)), step("PATCH", path + "/a", {"spec": {"type": other}}, "merge")]
    yield "service-no-name", [step("POST", path, service), step("PATCH", path + "/a", {"spec": {"type": "ExternalName"}}, "merge")]
    yield "service-keeps-address", [step("POST", path, service), step("PATCH", path + "/a", {"spec": {"type": "ExternalName", "externalName": "a.b", "clusterIP": "10.0.0.99"}}, "merge")]
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "u"}
    yield "owners", [cm("a"), step("PATCH", CM + "/a", {"metadata": {"ownerReferences": [dict(owner, blockOwnerDeletion=True)]}}, "merge"), step("PATCH", CM + "/a", {"metadata": {"ownerReferences": [owner, owner]}}, "merge"), step("PATCH", CM + "/a", {"metadata": {"ownerReferences": [dict(owner, controller=True), dict(owner, uid="v", controller=True)]}}, "merge")]


def parts():
    """Evictions, bindings and tokens: dry runs and preconditions."""
    pods, pod = BASE["pod"]
    make, look = step("POST", pods, pod), step("GET", pods + "/a")

    def evict(query="", name="a", **options):
        return step("POST", pods + "/a/eviction" + query, dict({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}, **({"deleteOptions": options} if options else {})))

    yield "eviction-dry", [make, evict("?dryRun=All"), look, evict(dryRun=["All"]), look, evict("?dryRun=All", dryRun=["All"]), evict(dryRun=["Bogus"]), evict("?dryRun=Bogus"), look]
    yield "eviction-conditions", [make, evict(preconditions={"uid": "x"}), evict(preconditions={"resourceVersion": "1"}), look, evict(preconditions={"uid": "{uid:0}", "resourceVersion": "{rv:0}"}), look]
    yield "eviction-dry-conditions", [make, evict(dryRun=["All"], preconditions={"uid": "x"}), look]
    yield "eviction-name", [make, evict(name="b"), step("POST", pods + "/a/eviction", {}), step("POST", pods + "/none/eviction", {"metadata": {"name": "none"}}), step("POST", pods + "/a/eviction", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}), look]
    yield "eviction-waits", [step("POST", pods, changed(pod, {"spec.nodeName": "n"})), evict(gracePeriodSeconds=5), look, evict(), evict(gracePeriodSeconds=0), look]
    yield "eviction-held", [step("POST", pods, changed(pod, {"metadata.finalizers": ["x.io/y"]})), evict(propagationPolicy="Foreground"), look, evict(propagationPolicy="Bogus")]

    def bind(query="", node="n", kind="Node", **meta):
        return step("POST", pods + "/a/binding" + query, {"metadata": dict({"name": "a"}, **meta), "target": {"kind": kind, "name": node}})

    yield "binding-dry", [make, bind("?dryRun=All"), look, bind("?dryRun=Bogus"), look, bind(), look, bind(node="m")]
    yield "binding-conditions", [make, bind(uid="x"), bind(resourceVersion="1"), look, bind(uid="{uid:0}", resourceVersion="{rv:0}"), look]
    yield "binding-target", [make, bind(kind="Pod"), bind(node=""), bind(kind="Pod", node=""), bind(kind=""), look]
    yield "binding-metadata", [make, bind(annotations={"x": "y"}, labels={"l": "m"}), look]
    yield "binding-gone", [step("POST", pods, changed(pod, {"metadata.finalizers": ["x.io/y"]})), step("DELETE", pods + "/a"), bind(), look]
    yield "binding-gates", [step("POST", pods, changed(pod, {"spec.schedulingGates": [{"name": "g"}]})), bind(), look]
    yield "binding-old", [make, step("POST", "/api/v1/namespaces/{ns}/bindings", {"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n"}}), look, step("POST", "/api/v1/namespaces/{ns}/bindings", {"metadata": {"name": "none"}, "target": {"name": "n"}})]
    deletes = [({"dryRun": ["All"]}, ""), ({"dryRun": ["Bogus"]}, ""), ({"dryRun": ["All", "x"]}, ""), ({"propagationPolicy": ""}, ""), ({"propagationPolicy": "Bogus", "orphanDependents": True}, ""), ({}, "?dryRun=All")]
    for number, (options, query) in enumerate(deletes):
        yield "delete-%d" % number, [cm("a"), step("DELETE", CM + "/a" + query, options), step("GET", CM + "/a")]
    yield "delete-negative", [make, step("DELETE", pods + "/a?gracePeriodSeconds=-5"), look]
    yield "delete-many-dry", [cm("a"), step("DELETE", CM, {"dryRun": ["All"]}), step("GET", CM + "/a"), step("DELETE", CM + "?dryRun=All"), step("GET", CM + "/a")]
    yield "scale-dry", [step("POST", BASE["dep"][0], BASE["dep"][1]), step("PATCH", BASE["dep"][0] + "/a/scale?dryRun=All", {"spec": {"replicas": 5}}, "merge"), step("GET", BASE["dep"][0] + "/a/scale")]


QUERIES = ["limit=", "limit=x", "limit=99999999999999999999", "limit=-1", "limit=1.5", "limit=%zz", "limit=1;x=2", "watch=&timeoutSeconds=1", "watch=false", "watch=FALSE", "watch=0", "watch=1&timeoutSeconds=x", "watch=1&timeoutSeconds=", "timeoutSeconds=x", "allowWatchBookmarks=x", "resourceVersion=-1", "resourceVersion=1.5", "resourceVersion=99999999999999999999", "resourceVersionMatch=", "resourceVersionMatch=Bogus", "resourceVersion=0&resourceVersionMatch=Bogus",
           "resourceVersion=1&resourceVersionMatch=Exact&continue=x", "continue=x", "continue=e30", "continue=%00", "sendInitialEvents=true", "sendInitialEvents=false", "labelSelector=%00", "labelSelector=a%3D%C3%A9", "fieldSelector=x", "fieldSelector=metadata.name", "pretty=x", "pretty=", "bogus=1", "limit=1&limit=x", "includeObject=x", "=x", "&&", "limit", "watch=1&timeoutSeconds=1&resourceVersion=1.5", "watch=1&timeoutSeconds=1&continue=x", "watch=1&timeoutSeconds=1&resourceVersionMatch=Exact", "watch=1&timeoutSeconds=1&sendInitialEvents=true&resourceVersionMatch=Exact", "watch=1&timeoutSeconds=1&limit=x", "watch=x&timeoutSeconds=1&fieldSelector=metadata.name=none"]


def queries():
    """Queries with values that mean nothing, and documents beside the resources."""
    for number, query in enumerate(QUERIES):
        yield "list-%02d" % number, [cm("a"), step("GET", CM + "?" + query)]
    for number, query in enumerate(["watch=1&timeoutSeconds=1", "watch=x&timeoutSeconds=1", "resourceVersion=x", "resourceVersion=-1", "limit=x", "timeoutSeconds=x", "fieldSelector=metadata.name%3Dother"]):
        yield "get-%d" % number, [cm("a"), step("GET", CM + "/a?" + query)]
    for number, query in enumerate(["dryRun=", "dryRun=all", "dryRun=All&dryRun=All", "dryRun=All&dryRun=x", "fieldManager=", "fieldManager=a%00b", "fieldManager=%C3%A9", "fieldValidation=", "fieldValidation=strict", "fieldValidation=Strict&fieldValidation=x", "pretty=true", "timeout=x", "timeout=1s", "timeout=-1s"]):
        yield "create-%02d" % number, [step("POST", CM + "?" + query, {"metadata": {"name": "a"}, "bogus": 1})]
    for number, query in enumerate(["force=true", "force=false", "force=x", "force=", "fieldManager=m&force=x", "fieldManager=", "dryRun="]):
        yield "patch-%d" % number, [cm("a"), step("PATCH", CM + "/a?" + query, {"data": {"a": "b"}}, "merge"), step("PATCH", CM + "/a?" + query, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}, "apply")]
    for number, query in enumerate(["gracePeriodSeconds=", "gracePeriodSeconds=1.5", "orphanDependents=x", "orphanDependents=", "propagationPolicy=", "dryRun=", "dryRun=All&dryRun=x", "orphanDependents=true&propagationPolicy=Orphan", "preconditions=x"]):
        yield "delete-%d" % number, [cm("a"), step("DELETE", CM + "/a?" + query), step("GET", CM + "/a")]
    for number, query in enumerate(["limit=x", "labelSelector=(", "dryRun=x", "timeoutSeconds=x", "resourceVersion=x"]):
        yield "delete-many-%d" % number, [cm("a"), step("DELETE", CM + "?" + query), step("GET", CM + "/a")]
    yield "oidc", [step("GET", "/.well-known/openid-configuration"), step("GET", "/.well-known/openid-configuration/"), step("POST", "/.well-known/openid-configuration", {})]
    yield "health", [step("GET", p) for p in ("/healthz", "/livez", "/readyz", "/healthz/ping", "/healthz/bogus", "/healthz?exclude=ping", "/livez?verbose=0", "/healthz/", "/version/", "/metrics/bogus", "/apis/", "/api/", "/api/v1/", "/openapi", "/logs", "/api/v2", "/apis/apps/", "/version?x=y")]
    yield "paths", [step("GET", p) for p in ("/api/v1/namespaces/{ns}/configmaps/", "/api/v1//namespaces", "/api/v1/namespaces/{ns}/configmaps/a/b/c", "/api/v1/configmaps/a", "/api/v1/namespaces/{ns}/nodes", "/api/v1/nodes/none/bogus", "/api/v1/watch/namespaces/{ns}/configmaps/none?timeoutSeconds=1", "/api/v1/proxy/x", "/api/v1/namespaces/{ns}/pods/none/log", "/apis/apps/v1/namespaces/{ns}/deployments/none/scale", "/apis/apps/v1/namespaces/{ns}/deployments/none/bogus")]


PATTERNS = [(r"^\d+$", ["12", "١٢"]), (r"^\w+$", ["a_1", "é"]), (r"^\s+$", [" ", "\u00a0"]), (r"\bx", ["ax", "éx", "-x"]), (r"^[[:alpha:]]+$", ["abc", "é"]), (r"^\pL+$", ["é", "1"]), (r"^\p{Greek}+$", ["α", "a"]), (r"^\p{greek}+$", ["α"]), (r"^(?i)é$", ["É"]), (r"^a$", ["a", "a\n"]), (r"^a\z", ["a", "a\n"]), (r"^a\Z", ["a"]), (r"^(?m)a$", ["b\na"]), (r"(?s)a.b", ["a\nb"]), (r"a.b", ["a\nb"]), (r"^a{2,3}$", ["aa", "a"]),
            (r"a{1001}", ["a"]), (r"a{1000}", ["a"]), (r"(a{100}){11}", ["a"]), (r"a{,3}", ["a{,3}", "aa"]), (r"a{3,2}", ["a"]), (r"\Qa.b\E", ["a.b", "axb"]), (r"\C", ["a"]), (r"(?P<n>a)", ["a"]), (r"(?<n>a)", ["a"]), (r"(?P<n>a)(?P<n>b)", ["ab"]), (r"(?=a)", ["a"]), (r"(?!a)", ["a"]), (r"(a)\1", ["aa"]), (r"a++", ["a"]), (r"a**", ["a"]), (r"a*?", ["a"]), (r"[a-z&&[^b]]", ["b", "&"]), (r"[a--b]", ["a"]), (r"[a~~b]", ["~"]), (r"[[a]]", ["a]", "a"]), (r"[]a]", ["]"]), (r"[^]a]", ["b"]), (r"[z-a]", ["a"]), (r"\x{10FFFF}", ["a"]), (r"\x{110000}", ["a"]), (r"\u0041", ["A"]), (r"\x41", ["A"]), (r"\101", ["A"]), (r"\8", ["8"]), (r"\_", ["_"]), (r"\é", ["é"]), (r"\/", ["/"]), (r"\<", ["<"]), (r"\>", [">"]), (r"\-", ["-"]), (r"\ ", [" "]), (r"(?x) a b", ["ab"]), (r"(?U)a+", ["a"]), (r"(?R)a", ["a"]), (r"(?u)a", ["a"]), (r"(?-u)\w", ["a"]), (r"(?i:a)b", ["Ab", "AB"]), (r"(?#x)a", ["a"]), (r"(", ["a"]), (r")", ["a"]), (r"*a", ["a"]), (r"a|", ["b"]), (r"()", ["b"]), (r"[", ["a"]), (r"\\", ["\\"]), ("\\", ["a"]), (r"\K", ["a"]), (r"\A", ["a"]), (r"\G", ["a"]), (r"\h", ["a"]), (r"\R", ["a"]), (r"\X", ["a"]), (r"\v", ["\u000b"]), (r"\a\f", ["\u0007\u000c"]), (r"\e", ["\u001b"]), (r"\cA", ["\u0001"]), (r"\N{DIGIT ONE}", ["1"]), (r"\p{L", ["a"]), (r"\p{IsGreek}", ["α"]), (r"\p{Script=Greek}", ["α"]), (r"\p{Alphabetic}", ["a"]), (r"\p{Any}", ["a"]), (r"\p{^L}", ["1", "a"]), (r"\P{^L}", ["1", "a"]), (r"[[:^alpha:]]", ["1"]), (r"[[:bogus:]]", ["1"]), (r"[\d\-x]", ["-"]), (r"[a-\d]", ["a"]), (r"[\d-z]", ["-"]), (r"\p{Lu}", ["A", "ǅ"]), (r"\p{LC}", ["a"]), (r"\p{ASCII}", ["a"]), (r"[[:word:]]", ["_"]), (r"x{2}{3}", ["x"]), (r"(?i)ſ", ["s", "S"]), (r"(?i)k", ["\u212a"]), (r"[^\n]", ["\n"]), (r"\B", ["a"]), (r"\b{start}a", ["a"]), ("((((((((((a{2}){2}){2}){2}){2}){2}){2}){2}){2}){2}", ["a"]), ("(" * 999 + "a" + ")" * 999, ["a"]), ("(" * 1001 + "a" + ")" * 1001, ["a"])]


def patterns():
    """Regular expressions in schemas: what is one, and what it finds."""
    for number, (pattern, values) in enumerate(PATTERNS):
        schema = {"type": "object", "properties": {"v": {"type": "string", "pattern": pattern}}}
        make = definition(schema)
        yield "%03d" % number, [make, step("WAIT", "/apis/{u}.io/v1")] + [step("POST", G + "?dryRun=All", foo({"v": value})) for value in values]


BODIES = ["", " ", "{", "}", "[", "]", "[]", "{}", "null", "true", "1", "\"a\"", "nul", "tru", "fals", "nulx", "{\"a\"", "{\"a\":", "{\"a\":1", "{\"a\":1,", "{\"a\":1,}", "{,}", "{a:1}", "{'a':1}", "{\"a\":1 \"b\":2}", "[1,]", "{\"metadata\":{\"name\":\"a\"}} x", "{\"metadata\":{\"name\":\"a\"}}{}", "{\"a\":01}", "{\"a\":1.}", "{\"a\":-}", "{\"a\":+1}", "{\"a\":1e}", "{\"a\":1e400}", "{\"a\":.5}", "{\"a\":0x1}", "{\"a\":NaN}", "{\"a\":\"\\x\"}", "{\"a\":\"\\u12\"}", "{\"a\":\"\\u12g4\"}", "{\"a\":\"\n\"}", "{\"a\":\"\t\"}", "{\"a\":\"", "{\"a\":\"\\", "\ufeff{}", "{\"a\":tRue}", "{\"a\":[1 2]}", "{\"a\":[1,", "{\"a\":[", "{\"é\":é}", "{\"a\":\u0001}", "{\"a\"=1}", "{1:2}", "{\"kind\":1}", "{\"kind\":null,\"metadata\":{\"name\":\"a\"}}", "{\"apiVersion\":[]}", "// x\n{}", "{\"data\":{\"a\":1}}", "{\"metadata\":[]}", "{\"metadata\":{\"name\":1}}", "{\"metadata\":{\"labels\":{\"a\":null},\"name\":\"a\"}}", "{\"data\":{\"a\":null},\"metadata\":{\"name\":\"a\"}}", "-", "--1", "1 2", "\"\\ud800\"", "'", "`", "{\"a\":1}}", "[[[", "{\"\":", "x", "metadata:\n  name: a\n", "\u007f", "é"]


def bodies():
    """Bodies that are no JSON, or not that of an object, in the words of the reader."""
    for number, body in enumerate(BODIES):
        yield "%03d" % number, [step("POST", CM + "?dryRun=All", body), cm("z"), step("PATCH", CM + "/z?dryRun=All", body, "merge"), step("PATCH", CM + "/z?dryRun=All", body, "json"), step("DELETE", CM + "/none", body)]


def randoms():
    """Random patch sequences, the same ones each time."""
    for number in range(60):
        yield "%02d" % number, random_sequence(random.Random("fixed-%d" % number))


T0 = "2020-01-01T00:00:00Z"

REFUSED_STATUSES = {
    "pod": [{"conditions": [{"type": "bad type!", "status": "True"}]}, {"conditions": [{"type": "x.io/good", "status": "True"}]}, {"conditions": [{"type": "Ready", "status": "True", "observedGeneration": -1}]}, {"conditions": [{"type": "", "status": "True"}]}, {"hostIP": "1.2.3.4", "hostIPs": [{"ip": "x"}]}, {"hostIPs": [{"ip": "1.2.3.4"}, {"ip": "1.2.3.5"}]}, {"hostIP": "1.2.3.4", "hostIPs": [{"ip": "1.2.3.5"}]},
            {"podIP": "1.2.3.4", "podIPs": [{"ip": "1.2.3.5"}]}, {"podIPs": [{"ip": "1.2.3.4"}, {"ip": "1.2.3.4"}]}, {"podIPs": [{"ip": "1.2.3.4"}, {"ip": "::1"}]}, {"podIPs": [{"ip": "01.2.3.4"}]}, {"resourceClaimStatuses": [{"name": "x"}, {"name": "x"}]}, {"containerStatuses": [{"name": "c", "image": "i", "imageID": "", "ready": False, "restartCount": 0, "user": {"linux": {"uid": -1, "gid": -1}}}]},
            {"ephemeralContainerStatuses": [{"name": "e", "image": "i", "imageID": "", "ready": False, "restartCount": 0, "state": {"terminated": {"exitCode": 0}}}]}],
    "job": [{"conditions": [{"type": "FailureTarget", "status": "True"}, {"type": "SuccessCriteriaMet", "status": "True"}]}, {"startTime": T0, "conditions": [{"type": "SuccessCriteriaMet", "status": "True"}, {"type": "FailureTarget", "status": "True"}, {"type": "Failed", "status": "True"}]}, {"startTime": T0, "terminating": 1, "conditions": [{"type": "FailureTarget", "status": "True"}, {"type": "Failed", "status": "True"}]}, {"conditions": [{"type": "SuccessCriteriaMet", "status": "True"}]}, {"completedIndexes": "1"}, {"failedIndexes": "0"}],
    "pvc": [{"allocatedResources": {"cpu": "1"}}, {"allocatedResources": {"x.io/y": "1"}}, {"allocatedResources": {"a b": "1"}}, {"allocatedResources": {"storage": "1500m"}}, {"allocatedResources": {"kubernetes.io/x": "1"}}, {"allocatedResources": {"requests.storage": "1"}}, {"allocatedResourceStatuses": {"cpu": "NodeResizePending"}}, {"allocatedResourceStatuses": {"a b": "Bogus"}}, {"allocatedResourceStatuses": {"x.io/y": "NodeResizePending"}}, {"allocatedResourceStatuses": {"storage": ""}}, {"capacity": {"cpu": "1", "storage": "1500m"}}, {"allocatedResources": {"storage": "-1"}}],
    "svc": [{"loadBalancer": {"ingress": [dict(e)]}} for e in ({"ip": "a.b"}, {"ip": "1.2.3.4", "ipMode": "Odd"}, {"ip": "1.2.3.4", "ipMode": "Proxy"}, {"ipMode": "VIP"}, {"ip": "", "hostname": "a.b", "ipMode": "Proxy"}, {"hostname": "1.2.3.4"}, {"hostname": "01.2.3.4"}, {"hostname": "::1"}, {"ip": "01.2.3.4"}, {"ip": "::1"}, {"ip": "::ffff:1.2.3.4"}, {"hostname": "a.b", "ports": [{"port": 80, "protocol": "TCP"}]}, {"hostname": "a.b", "ports": [{"port": 0, "protocol": "X", "error": "a b"}]}, {"hostname": "a.b", "ports": [{"port": 70000, "protocol": "TCP", "error": "x.io/Bad"}]}, {})],
    "ing": [{"loadBalancer": {"ingress": [dict(e)]}} for e in ({"ip": "a.b"}, {"hostname": "1.2.3.4"}, {"hostname": "::1"}, {"ip": "01.2.3.4"}, {"hostname": "a.b", "ports": [{"port": 0, "protocol": "X", "error": "a b"}]}, {"hostname": "a.b", "ports": [{"port": 80, "protocol": "TCP", "error": "x.io/Bad"}]})],
    "pdb": [{"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0, "observedGeneration": -1, "disruptedPods": {"a b": T0}}, {"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0, "conditions": [{"type": "A", "status": "True", "reason": "A", "message": "", "lastTransitionTime": T0}, {"type": "A", "status": "True", "reason": "A", "message": "", "lastTransitionTime": T0}]}, {"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0, "conditions": [{"type": "A", "status": "True", "reason": "A", "message": "{x*32769}", "lastTransitionTime": T0, "observedGeneration": -1}]}, {"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0, "conditions": [{"type": "A", "status": "True", "reason": "{x*1025}", "message": "", "lastTransitionTime": T0}]}],
    "node": [{"capacity": {"bogus": "1"}}, {"capacity": {"x.io/y": "1.5"}}, {"daemonEndpoints": {"kubeletEndpoint": {"Port": 70000}}}, {"addresses": [{"type": "X", "address": "y"}]}],
    "pv": [{"phase": ""}],
    "hpa": [{"currentReplicas": 1, "desiredReplicas": 1, "observedGeneration": -1}, {"currentReplicas": 1, "desiredReplicas": 1, "currentMetrics": [{"type": "Resource"}]}],
    "rc": [{"replicas": 1, "observedGeneration": -1, "conditions": [{"type": "a b", "status": "x"}]}],
    "ns": [{"phase": "Active", "conditions": [{"type": "a b", "status": "x"}]}],
    "rq": [{"hard": {"x.io/y": "1"}}, {"hard": {"count/configmaps": "1"}, "used": {"count/configmaps": "1.5"}}, {"hard": {"requests.x.io/y": "1"}}, {"hard": {"requests.nvidia.com/gpu": "-1"}}],
    "sts": [{"replicas": 1, "readyReplicas": 1, "conditions": [{"type": "a b", "status": "x"}]}],
    "ds": [{"currentNumberScheduled": 0, "numberMisscheduled": 0, "desiredNumberScheduled": 0, "numberReady": 3}],
    "cj": [{"active": [{"kind": "X", "name": "a b"}], "lastSuccessfulTime": T0}],
    "crd": [{"storedVersions": []}, {"storedVersions": ["v1", "v9"]}],
}

# What is changed after it was made: kind, what it is made with, what changes.
CHANGED = {
    "job": [({}, {"podFailurePolicy": {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "X", "status": "True"}]}]}}), ({}, {"backoffLimitPerIndex": 1}), ({"spec.completionMode": "Indexed", "spec.completions": 2, "spec.backoffLimitPerIndex": 1}, {"backoffLimitPerIndex": 2}), ({"spec.completionMode": "Indexed", "spec.completions": 2}, {"successPolicy": {"rules": [{"succeededCount": 1}]}}),
            ({"spec.completionMode": "Indexed", "spec.completions": 2, "spec.backoffLimitPerIndex": 1}, {"maxFailedIndexes": 1}), ({"spec.completionMode": "Indexed", "spec.completions": 2, "spec.successPolicy": {"rules": [{"succeededCount": 1}]}}, {"successPolicy": None}), ({}, {"activeDeadlineSeconds": 5}), ({}, {"podReplacementPolicy": "Failed"}), ({"spec.completionMode": "Indexed", "spec.completions": 2}, {"completions": None})],
    "svc": [({}, {"loadBalancerClass": "x.io/y"}), ({"spec.type": "LoadBalancer"}, {"loadBalancerClass": "x.io/y"}), ({"spec.type": "LoadBalancer", "spec.loadBalancerClass": "x.io/y"}, {"loadBalancerClass": "x.io/z"}), ({"spec.type": "LoadBalancer", "spec.loadBalancerClass": "x.io/y"}, {"loadBalancerClass": None}), ({"spec.type": "LoadBalancer", "spec.loadBalancerClass": "x.io/y"}, {"type": "ClusterIP"}), ({"spec.type": "LoadBalancer", "spec.loadBalancerClass": "x.io/y"}, {"type": "NodePort", "loadBalancerClass": None}), ({}, {"type": "LoadBalancer", "loadBalancerClass": "x.io/y"}), ({"spec.type": "LoadBalancer"}, {"loadBalancerClass": "a b"}), ({"spec.type": "LoadBalancer"}, {"loadBalancerClass": ""}), ({"spec.type": "LoadBalancer", "spec.loadBalancerClass": "x.io/y"}, {"type": "ClusterIP", "loadBalancerClass": "x.io/z"}),
            ({"spec.type": "LoadBalancer", "spec.externalTrafficPolicy": "Local"}, {"healthCheckNodePort": 32001}), ({"spec.type": "LoadBalancer", "spec.externalTrafficPolicy": "Local"}, {"externalTrafficPolicy": "Cluster"}), ({}, {"sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 5}}}), ({}, {"sessionAffinity": "ClientIP", "sessionAffinityConfig": {}}), ({}, {"sessionAffinity": "ClientIP"}), ({}, {"ipFamilies": []}), ({}, {"clusterIP": "None"}), ({}, {"clusterIP": "None", "clusterIPs": ["None"]}), ({}, {"ipFamilyPolicy": None}), ({}, {"ipFamilyPolicy": "PreferDualStack"}), ({}, {"internalTrafficPolicy": "Odd"}), ({}, {"internalTrafficPolicy": None}), ({}, {"sessionAffinity": "Odd"}), ({}, {"trafficDistribution": "Odd"}), ({}, {"trafficDistribution": ""}), ({"spec.type": "LoadBalancer"}, {"allocateLoadBalancerNodePorts": None})],
    "sec": [({}, {"type": "x"}), ({"immutable": True}, {"immutable": None}), ({"immutable": True}, {"stringData": {"a": "b"}}), ({"immutable": True, "data": {"a": "eA=="}}, {"data": {"a": "eQ=="}})],
    "cm": [({"immutable": True}, {"binaryData": {"a": "eA=="}}), ({"immutable": True}, {"immutable": None})],
    "pv": [({"spec.volumeMode": "Filesystem"}, {"volumeMode": "Block"}), ({"spec.nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]}}}, {"nodeAffinity": None}), ({"spec.nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]}}}, {"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "b", "operator": "Exists"}]}]}}}), ({}, {"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "b", "operator": "Exists"}]}]}}}), ({}, {"hostPath": {"path": "/y"}}), ({}, {"capacity": {"storage": "2Gi"}}), ({}, {"accessModes": ["ReadWriteMany"]}), ({}, {"persistentVolumeReclaimPolicy": "Delete"}), ({}, {"persistentVolumeReclaimPolicy": "Odd"}), ({}, {"storageClassName": "x"}), ({}, {"capacity": None}), ({}, {"volumeAttributesClassName": "x"})],
    "pc": [({}, {"__": {"value": 6}}), ({}, {"__": {"preemptionPolicy": "Never"}})],
    "rtc": [({}, {"__": {"handler": "y"}}), ({}, {"__": {"overhead": {"podFixed": {"cpu": "1"}}}}), ({}, {"__": {"scheduling": {"nodeSelector": {"a b": "c"}}}})],
    "sc": [({}, {"__": {"parameters": {"a": "b"}}}), ({}, {"__": {"allowVolumeExpansion": True}}), ({}, {"__": {"mountOptions": ["x"]}}), ({}, {"__": {"volumeBindingMode": "WaitForFirstConsumer"}}), ({}, {"__": {"allowedTopologies": [{"matchLabelExpressions": [{"key": "a", "values": ["b"]}]}]}})],
    "ingc": [({}, {"controller": "x.io/z"}), ({}, {"parameters": {"kind": "A", "name": "b"}}), ({}, {"parameters": {"kind": "A", "name": "b", "scope": "Namespace"}}), ({}, {"parameters": {"kind": "A", "name": "b", "scope": "Odd"}}), ({}, {"controller": ""})],
    "cr": [({}, {"__": {"data": {"a": {"b": 2}}}}), ({}, {"__": {"data": None}})],
    "eps": [({}, {"__": {"addressType": "IPv6"}}), ({}, {"__": {"endpoints": [{"addresses": ["x"]}]}}), ({}, {"__": {"ports": [{"port": 80}, {"port": 81}]}})],
    "csid": [({}, {"attachRequired": False}), ({}, {"fsGroupPolicy": "Odd"}), ({}, {"volumeLifecycleModes": ["Ephemeral"]}), ({}, {"tokenRequests": [{"audience": "a"}, {"audience": "a"}]})],
    "rq": [({"spec.scopes": ["BestEffort"], "spec.hard": {"pods": "1"}}, {"scopes": ["NotBestEffort"]}), ({}, {"hard": {"pods": "1.5"}}), ({}, {"hard": {"bogus": "1"}}), ({}, {"hard": {"pods": "-1"}})],
    "node": [({"spec.podCIDR": "10.0.0.0/24", "spec.podCIDRs": ["10.0.0.0/24"]}, {"podCIDR": "10.0.1.0/24", "podCIDRs": ["10.0.1.0/24"]}), ({"spec.providerID": "x"}, {"providerID": "y"}), ({}, {"providerID": "y"}), ({}, {"taints": [{"key": "a b", "effect": "Odd"}]}), ({}, {"taints": [{"key": "a", "effect": "NoSchedule"}, {"key": "a", "effect": "NoSchedule"}]}), ({}, {"unschedulable": True}), ({}, {"podCIDRs": ["x"]}), ({}, {"externalID": "x"})],
    "ns": [({}, {"finalizers": ["abc"]}), ({}, {"finalizers": []}), ({}, {"finalizers": ["kubernetes", "x.io/y"]})],
    "ds": [({}, {"selector": {"matchLabels": {"a": "c"}}}), ({}, {"updateStrategy": {"type": "OnDelete"}}), ({}, {"updateStrategy": {"type": "OnDelete", "rollingUpdate": {"maxUnavailable": 0}}}), ({}, {"minReadySeconds": -1}), ({}, {"revisionHistoryLimit": -1}), ({}, {"template": {"spec": {"activeDeadlineSeconds": 5}}})],
    "dep": [({}, {"replicas": -1}), ({}, {"progressDeadlineSeconds": 1, "minReadySeconds": 1}), ({}, {"strategy": {"type": "Recreate"}}), ({}, {"paused": True, "revisionHistoryLimit": -1}), ({}, {"selector": {"matchLabels": {"a": "b", "c": "d"}}})],
    "sts": [({}, {"podManagementPolicy": "Parallel"}), ({}, {"serviceName": "t"}), ({}, {"ordinals": {"start": -1}}), ({}, {"persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Odd", "whenScaled": "Retain"}}), ({}, {"minReadySeconds": -1}), ({}, {"revisionHistoryLimit": -1}), ({}, {"volumeClaimTemplates": [{"metadata": {"name": "x"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}]})],
    "rs": [({}, {"selector": {"matchLabels": {"a": "c"}}}), ({}, {"minReadySeconds": -1}), ({}, {"replicas": -1})],
    "rc": [({}, {"selector": {"a": "c"}}), ({}, {"replicas": -1, "minReadySeconds": -1}), ({}, {"template": None}), ({}, {"selector": {}})],
    "cj": [({}, {"schedule": "x"}), ({}, {"timeZone": "Local"}), ({}, {"timeZone": "Odd/Zone"}), ({}, {"concurrencyPolicy": "Odd"}), ({}, {"suspend": True, "startingDeadlineSeconds": -1})],
    "hpa": [({}, {"minReplicas": 9}), ({}, {"scaleTargetRef": {"name": ""}}), ({}, {"behavior": {"scaleUp": {"policies": [{"type": "Odd", "value": 0, "periodSeconds": 0}]}}}), ({}, {"behavior": {"scaleDown": {"stabilizationWindowSeconds": 9999, "selectPolicy": "Odd"}}})],
    "pdb": [({}, {"maxUnavailable": 1}), ({}, {"minAvailable": None, "maxUnavailable": "-5%"}), ({}, {"selector": {"matchLabels": {"a": "c"}}}), ({}, {"unhealthyPodEvictionPolicy": "Odd"})],
    "lease": [({}, {"holderIdentity": ""}), ({}, {"leaseDurationSeconds": -1})],
    "np": [({}, {"policyTypes": ["Odd"]}), ({}, {"egress": [{"to": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.0.0.0/8"]}}]}]})],
    "pod": [({"spec.schedulingGates": [{"name": "g"}]}, {"nodeSelector": {"a": "b"}}), ({}, {"activeDeadlineSeconds": 0})],
    "ing": [({}, {"ingressClassName": "A_"}), ({}, {"ingressClassName": ""}), ({}, {"rules": None}), ({}, {"defaultBackend": {"service": {"name": "A_", "port": {"number": 80}}}})],
    "ep": [({}, {"__": {"subsets": [{"addresses": [{"ip": "x"}], "ports": [{"port": 80}]}]}}), ({}, {"__": {"subsets": [{"ports": [{"port": 80}]}]}}), ({}, {"__": {"subsets": [{"addresses": [{"ip": "127.0.0.1"}], "ports": [{"port": 0}]}]}})],
    "lr": [({}, {"limits": [{"type": "Odd"}]}), ({}, {"limits": [{"type": "Container", "max": {"cpu": "1"}, "min": {"cpu": "2"}}]})],
    "sa": [({}, {"__": {"automountServiceAccountToken": False}})],
    "rb": [({}, {"__": {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "y"}}})],
    "ev1": [({}, {"__": {"reason": "z"}}), ({}, {"__": {"series": {"count": 1, "lastObservedTime": "2020-01-01T00:00:00.000000Z"}}}), ({}, {"__": {"note": "z"}})],
    "ev": [({}, {"__": {"reason": "z"}}), ({}, {"__": {"involvedObject": {"name": "q"}}})],
    "pt": [({}, {"__": {"template": {"spec": {"containers": []}}}})],
    "mwc": [({}, {"__": {"webhooks": [{"name": "a"}]}})],
}

# What is made: kind, what it is made with.
MADE = {
    "pv": [{"spec.capacity": D}, {"spec.capacity": {"storage": "0"}}, {"spec.capacity": {"cpu": "1"}}, {"spec.accessModes": D}, {"spec.accessModes": ["Odd"]}, {"spec.accessModes": ["ReadWriteOncePod", "ReadWriteOnce"]}, {"spec.hostPath": D}, {"spec.nfs": {"server": "s", "path": "/x"}}, {"spec.hostPath.path": "/a/../b"}, {"spec.hostPath.path": ""}, {"spec.hostPath.type": "Odd"}, {"spec.hostPath": D, "spec.nfs": {"server": "", "path": "x"}}, {"spec.hostPath": D, "spec.csi": {"driver": "", "volumeHandle": ""}}, {"spec.hostPath": D, "spec.csi": {"driver": "x.io", "volumeHandle": "h"}}, {"spec.hostPath": D, "spec.local": {"path": "/x"}}, {"spec.persistentVolumeReclaimPolicy": "Odd"}, {"spec.volumeMode": "Odd"}, {"spec.storageClassName": "A_"}, {"spec.mountOptions": ["a,b"]}, {"spec.hostPath.path": "/", "spec.persistentVolumeReclaimPolicy": "Recycle"}, {"spec": D}, {"spec.nodeAffinity": {}}],
    "ep": [{"subsets": [{}]}, {"subsets.0.addresses.0.ip": "x"}, {"subsets.0.addresses.0.ip": "127.0.0.1"}, {"subsets.0.addresses.0.ip": "169.254.1.1"}, {"subsets.0.addresses.0.ip": "224.0.0.1"}, {"subsets.0.addresses.0.ip": ""}, {"subsets.0.addresses.0.hostname": "A_"}, {"subsets.0.addresses.0.nodeName": "A_"}, {"subsets.0.ports": [{"port": 80}, {"port": 81}]}, {"subsets.0.ports": [{"name": "A_", "port": 70000, "protocol": "X"}]}, {"subsets.0.ports.0.appProtocol": "a b"}],
    "eps": [{"addressType": D}, {"addressType": "Odd"}, {"endpoints.0.addresses": []}, {"endpoints.0.addresses": ["::1"]}, {"endpoints.0.addresses": ["x"]}, {"addressType": "FQDN"}, {"addressType": "FQDN", "endpoints.0.addresses": ["a.b"]}, {"ports": [{"port": 80}, {"port": 81}]}, {"ports": [{"name": "A_", "port": 80, "protocol": "X", "appProtocol": "a b"}]}, {"endpoints.0.hostname": "A_"}, {"endpoints.0.nodeName": "A_"}, {"endpoints.0.addresses": ["127.0.0.1"]}],
    "lr": [{"spec.limits.0.type": "Odd"}, {"spec.limits.0.type": "x.io/y"}, {"spec.limits": [{"type": "Container"}, {"type": "Container"}]}, {"spec.limits": [{"type": "Container", "min": {"cpu": "2"}, "max": {"cpu": "1"}}]}, {"spec.limits": [{"type": "Container", "default": {"cpu": "2"}, "max": {"cpu": "1"}}]}, {"spec.limits": [{"type": "Container", "defaultRequest": {"cpu": "2"}, "default": {"cpu": "1"}}]}, {"spec.limits": [{"type": "Container", "defaultRequest": {"cpu": "1"}, "min": {"cpu": "2"}}]}, {"spec.limits": [{"type": "Pod", "default": {"cpu": "1"}, "defaultRequest": {"cpu": "1"}}]}, {"spec.limits": [{"type": "PersistentVolumeClaim"}]}, {"spec.limits": [{"type": "Container", "max": {"bogus": "1"}}]}, {"spec.limits": [{"type": "Container", "maxLimitRequestRatio": {"cpu": "0.5"}}]}, {"spec.limits": [{"type": "Container", "max": {"cpu": "-1"}}]}, {"spec.limits": [{"type": "Container", "max": {"cpu": "2"}, "min": {"cpu": "1"}, "maxLimitRequestRatio": {"cpu": "4"}}]}],
    "sc": [{"provisioner": ""}, {"provisioner": "a b"}, {"reclaimPolicy": "Odd"}, {"reclaimPolicy": "Recycle"}, {"volumeBindingMode": "Odd"}, {"parameters": {"": "x"}}, {"allowedTopologies": [{}]}, {"allowedTopologies": [{"matchLabelExpressions": [{"key": "a", "values": []}]}]}, {"allowedTopologies": [{"matchLabelExpressions": [{"key": "a b", "values": ["x", "x"]}]}]}, {"mountOptions": ["a"]}],
    "rq": [{"spec.hard": {"bogus": "1"}}, {"spec.hard": {"pods": "1.5"}}, {"spec.hard": {"pods": "-1"}}, {"spec.hard": {"x.io/y": "1"}}, {"spec.hard": {"requests.x.io/y": "1"}}, {"spec.hard": {"limits.x.io/y": "1"}}, {"spec.scopes": ["Odd"]}, {"spec.scopes": ["BestEffort", "NotBestEffort"], "spec.hard": {"pods": "1"}}, {"spec.scopes": ["Terminating", "NotTerminating"]}, {"spec.hard": {"x.storageclass.storage.k8s.io/requests.storage": "1"}}],
    "rc": [{"spec.selector": {}}, {"spec.selector": {"a": "c"}}, {"spec.template": D}, {"spec.replicas": -1}, {"spec.template.spec.restartPolicy": "Never"}, {"spec.minReadySeconds": -1}, {"spec.selector": D}, {"spec.template.spec.containers.0.image": D}],
    "pt": [{"template": D}, {"template.spec.containers": []}, {"template.metadata.labels": {"a b": "c"}}],
    "ingc": [{"spec": D}, {"spec.controller": "x"}, {"spec.controller": "a b/c"}, {"spec.parameters": {}}, {"spec.parameters": {"kind": "A", "name": "b", "scope": "Cluster", "namespace": "x"}}, {"spec.parameters": {"kind": "A/", "name": "b/", "apiGroup": "A_"}}],
    "rtc": [{"handler": ""}, {"handler": "A_"}, {"overhead": {"podFixed": {"cpu": "-1"}}}, {"scheduling": {"tolerations": [{"key": "a", "operator": "Odd"}]}}],
    "csid": [{"spec.fsGroupPolicy": "Odd"}, {"spec.volumeLifecycleModes": ["Odd"]}, {"spec.tokenRequests": [{"audience": "a", "expirationSeconds": 5}]}, {"spec.attachRequired": False}],
    "node": [{"spec.taints": [{"key": "a", "effect": "Odd"}]}, {"spec.podCIDR": "x"}, {"spec.podCIDRs": ["10.0.0.0/24", "10.0.1.0/24"]}, {"metadata.name": "A_"}],
    "cr": [{"data": D}, {"revision": -1}, {"data": 5}],
    "ns": [{"spec": {"finalizers": ["abc"]}}, {"spec": {"finalizers": ["a b"]}}, {"spec": {"finalizers": ["x.io/y"]}}, {"spec": {"finalizers": ["kubernetes", "orphan"]}}, {"metadata.finalizers": ["abc"]}, {"metadata.finalizers": ["a b/c"]}, {"spec": {"finalizers": [""]}}],
    "cm": [{"metadata.finalizers": ["abc"]}, {"metadata.finalizers": [""]}, {"metadata.finalizers": ["x.io/y/z"]}] + [{"metadata.ownerReferences": [dict({"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "u"}, **more)]} for more in ({"apiVersion": "a/b/c"}, {"apiVersion": "a/b/c/d"}, {"apiVersion": "/v1"}, {"apiVersion": "/"}, {"apiVersion": "a//b"}, {"apiVersion": ""}, {"apiVersion": "events.k8s.io/v1", "kind": "Event"}, {"name": "a b"}, {"kind": ""}, {"uid": ""}, {"apiVersion": "apps/"}, {"apiVersion": "A_/v1"})],
    "svc": [{"spec.loadBalancerClass": "x.io/y"}, {"spec.type": "LoadBalancer", "spec.loadBalancerClass": "a b"}, {"spec.type": "LoadBalancer", "spec.loadBalancerClass": ""}, {"spec.type": "LoadBalancer", "spec.loadBalancerClass": "y"}, {"spec.type": "NodePort", "spec.loadBalancerClass": "x.io/y"}, {"spec.sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 5}}}, {"spec.sessionAffinity": "ClientIP", "spec.sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 0}}}, {"spec.externalIPs": ["169.254.0.1"]}, {"spec.externalIPs": ["224.0.0.1"]}, {"spec.externalIPs": ["01.2.3.4"]}, {"spec.externalIPs": ["::ffff:1.2.3.4"]}, {"spec.externalIPs": ["fe80::1", "ff02::1", "::1"]}, {"metadata.annotations": {"service.beta.kubernetes.io/load-balancer-source-ranges": "10.0.0.0/8"}}, {"spec.type": "LoadBalancer", "metadata.annotations": {"service.beta.kubernetes.io/load-balancer-source-ranges": "x, 10.0.0.0/8"}}, {"spec.type": "LoadBalancer", "spec.loadBalancerSourceRanges": ["01.0.0.0/8", "10.0.0.1/8", " 10.0.0.0/8 "]}, {"spec.type": "LoadBalancer", "spec.loadBalancerIP": "x"}, {"spec.healthCheckNodePort": 32000}],
    "pod": [{"spec.nodeName": "A_"}, {"spec.hostname": "A_"}, {"spec.subdomain": "A_"}, {"spec.serviceAccountName": "A_"}, {"spec.priorityClassName": "none"}, {"spec.os": {"name": "odd"}}, {"spec.schedulingGates": [{"name": "a b"}]}, {"spec.schedulingGates": [{"name": "a"}, {"name": "a"}]}, {"spec.runtimeClassName": "none"}, {"spec.imagePullSecrets": [{}]}, {"spec.readinessGates": [{"conditionType": "a b"}]}, {"spec.setHostnameAsFQDN": True, "spec.hostname": "a"}, {"spec.preemptionPolicy": "Odd"}, {"spec.hostAliases": [{"ip": "x", "hostnames": ["A_"]}]}, {"spec.topologySpreadConstraints": [{"maxSkew": 0, "topologyKey": "", "whenUnsatisfiable": "Odd"}]}, {"spec.dnsConfig": {"nameservers": ["x"]}}, {"spec.dnsPolicy": "None"}, {"spec.activeDeadlineSeconds": 0}, {"spec.terminationGracePeriodSeconds": -1}, {"spec.nodeName": "n", "spec.schedulingGates": [{"name": "g"}]}],
    "pdb": [{"spec.minAvailable": 1.5}, {"spec.minAvailable": "50"}, {"spec.minAvailable": "-5%"}],
    "lease": [{"spec.preferredHolder": "x"}, {"spec.strategy": "Odd", "spec.preferredHolder": "x"}],
    "pc": [{"metadata.name": "system-x"}, {"preemptionPolicy": "Odd"}, {"value": 1000000001}],
    "csin": [{"spec.drivers": [{"name": "", "nodeID": ""}]}, {"spec.drivers": [{"name": "x.io", "nodeID": "n", "topologyKeys": ["a b", ""]}]}, {"spec.drivers": [{"name": "x.io", "nodeID": "n", "allocatable": {"count": -1}}]}],
}

HOOK = {"name": "a.x.io", "clientConfig": {"url": "https://x.io/y"}, "sideEffects": "None", "admissionReviewVersions": ["v1"], "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}]}
HOOKS = [{}, {"name": "a"}, {"name": "A_"}, {"clientConfig": {}}, {"clientConfig": {"url": "http://x.io"}}, {"clientConfig": {"url": "https://u:p@x.io/y?z#f"}}, {"clientConfig": {"url": "https://x.io", "service": {"namespace": "a", "name": "b"}}}, {"clientConfig": {"service": {"namespace": "", "name": ""}}}, {"clientConfig": {"service": {"namespace": "a", "name": "b", "path": "x", "port": 70000}}}, {"clientConfig": {"service": {"namespace": "a", "name": "b", "path": "//", "port": 0}}}, {"clientConfig": {"service": {"namespace": "a", "name": "b", "path": "/a/ b"}}}, {"sideEffects": "Unknown"}, {"sideEffects": D}, {"sideEffects": "Odd"}, {"admissionReviewVersions": []}, {"admissionReviewVersions": ["v9"]}, {"admissionReviewVersions": ["v1", "v1"]}, {"admissionReviewVersions": ["A_"]}, {"failurePolicy": "Odd"}, {"matchPolicy": "Odd"}, {"timeoutSeconds": 0}, {"timeoutSeconds": 31}, {"namespaceSelector": {"matchLabels": {"a b": "c"}}}, {"objectSelector": {"matchExpressions": [{"key": "a", "operator": "Odd"}]}}, {"reinvocationPolicy": "Odd"}, {"rules": [{}]}, {"rules": [{"operations": ["ODD", "*"], "apiGroups": ["*", "a"], "apiVersions": ["", "*"], "resources": ["*", "a"]}]}, {"rules": [{"operations": ["*"], "apiGroups": ["a"], "apiVersions": ["v1"], "resources": ["*/x", "a/x", "a", "a/*", "*/*"]}]}, {"rules": [{"operations": ["*"], "apiGroups": ["a"], "apiVersions": ["v1"], "resources": ["a/b/c", ""], "scope": "Odd"}]}, {"matchConditions": [{"name": "", "expression": ""}]}, {"matchConditions": [{"name": "a", "expression": "true"}, {"name": "a", "expression": "true"}]}]


def refusals():
    """What a chart or a hook can write and a server refuses: statuses, changes of what stays, objects of rarer kinds."""
    def one(kind):
        path, base = BASE[kind]
        return path, path + "/" + base["metadata"]["name"], base

    for kind, cases in REFUSED_STATUSES.items():
        path, name, base = one(kind)
        made = changed(base, {"spec.type": "LoadBalancer"}) if kind == "svc" else base
        if kind == "crd":
            made, name = definition({"type": "object"})["b"], path + "/foos.{u}.io"
        wait = [step("WAIT", "/apis/{u}.io/v1")] if kind == "crd" else []
        for number, case in enumerate(cases):
            yield "%s-status-%02d" % (kind, number), [step("POST", path, made)] + wait + [step("PATCH", name + "/status", {"status": case}, "merge")]
    for kind, cases in CHANGED.items():
        path, name, base = one(kind)
        for number, (made, change) in enumerate(cases):
            body = change["__"] if "__" in change else {"spec": change} if kind not in ("sec", "cm") else change
            yield "%s-changed-%02d" % (kind, number), [step("POST", path, changed(base, made)), step("PATCH", name, body, "merge")]
    for kind, cases in MADE.items():
        path, name, base = one(kind)
        for number, made in enumerate(cases):
            yield "%s-made-%02d" % (kind, number), [step("POST", path, changed(base, made))]
    for kind in ("mwc", "vwc"):
        path, name, base = one(kind)
        for number, more in enumerate(HOOKS):
            if kind == "vwc" and "reinvocationPolicy" in more:
                continue
            yield "%s-made-%02d" % (kind, number), [step("POST", path + "?dryRun=All", dict(base, webhooks=[changed(HOOK, more)]))]
    path, service = BASE["svc"]
    status = lambda *entries: step("PATCH", path + "/a/status", {"status": {"loadBalancer": {"ingress": list(entries)}}}, "merge")
    for kind in ("ClusterIP", "NodePort"):
        yield "svc-no-balancer-" + kind.lower(), [step("POST", path, changed(service, {"spec.type": kind})), status({"ip": "1.2.3.4"}), status({"hostname": "1.2.3.4"})]
    yield "svc-no-longer-balancer", [step("POST", path, changed(service, {"spec.type": "LoadBalancer"})), status({"ip": "1.2.3.4"}), step("PATCH", path + "/a", {"spec": {"type": "ClusterIP"}}, "merge"), status({"ip": "1.2.3.5"})]
    pods, pod = BASE["pod"]
    ended = lambda state: {"status": {"ephemeralContainerStatuses": [{"name": "e", "image": "i", "imageID": "", "ready": False, "restartCount": 0, "state": state}]}}
    yield "pod-bound-nomination", [step("POST", pods, changed(pod, {"spec.nodeName": "n"})), step("PATCH", pods + "/a/status", {"status": {"nominatedNodeName": "m"}}, "merge")]
    yield "pod-nomination", [step("POST", pods, pod), step("PATCH", pods + "/a/status", {"status": {"nominatedNodeName": "m"}}, "merge")]
    yield "pod-ephemeral-ended", [step("POST", pods, pod), step("PATCH", pods + "/a/status", ended({"terminated": {"exitCode": 1}}), "merge"), step("PATCH", pods + "/a/status", ended({"running": {}}), "merge")]
    begun = lambda *states: {"status": {"initContainerStatuses": [{"name": "s", "image": "i", "imageID": "", "ready": False, "restartCount": 0, "state": states[0]}]}}
    for policy in ("Always", "OnFailure", "Never"):
        sidecar = changed(pod, {"spec.restartPolicy": policy, "spec.initContainers": [{"name": "s", "image": "i", "restartPolicy": "Always"}]})
        plain = changed(pod, {"spec.restartPolicy": policy, "spec.initContainers": [{"name": "s", "image": "i"}]})
        for name, base in (("sidecar", sidecar), ("init", plain)):
            yield "pod-%s-%s" % (name, policy.lower()), [step("POST", pods, base), step("PATCH", pods + "/a/status", begun({"terminated": {"exitCode": 1}}), "merge"), step("PATCH", pods + "/a/status", begun({"running": {}}), "merge")]
            yield "pod-%s-well-%s" % (name, policy.lower()), [step("POST", pods, base), step("PATCH", pods + "/a/status", begun({"terminated": {"exitCode": 0}}), "merge"), step("PATCH", pods + "/a/status", begun({"running": {}}), "merge")]
    review = lambda name: {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    target = {"kind": "Node", "name": "n"}
    yield "none-evicted", [step("POST", pods + "/none/eviction", review("none")), step("POST", pods + "/none/eviction", review("a")), step("POST", pods + "/none/eviction", {}), step("POST", pods + "/none/eviction", "{"), step("POST", pods + "/none/eviction", review("none") | {"metadata": {"name": "none", "namespace": "other"}}), step("POST", pods + "/none/eviction?dryRun=All", review("none")), step("POST", pods + "/none/eviction", review("none") | {"deleteOptions": {"preconditions": {"uid": "x"}}})]
    yield "none-bound", [step("POST", pods + "/none/binding", {"metadata": {"name": "none"}, "target": target}), step("POST", pods + "/none/binding", {"metadata": {"name": "a"}, "target": target}), step("POST", pods + "/none/binding", {"target": target}), step("POST", pods + "/none/binding", {}), step("POST", pods + "/none/binding", "{"), step("POST", pods + "/none/binding", {"metadata": {"name": "none"}, "target": {"kind": "Pod", "name": "n"}}), step("POST", pods + "/none/binding?dryRun=All", {"metadata": {"name": "none"}, "target": target}), step("POST", pods + "/none/binding", {"metadata": {"name": "none", "uid": "x"}, "target": target}), step("POST", pods + "/none/binding", {"metadata": {"name": "none", "namespace": "other"}, "target": target})]
    yield "names-differ", [step("POST", pods, pod), step("POST", pods + "/a/binding", {"metadata": {"name": "b"}, "target": target}), step("POST", pods + "/a/binding", {"metadata": {"name": "a", "namespace": "other"}, "target": target}), step("POST", pods + "/a/eviction", review("b")), step("POST", pods + "/a/eviction", review("a") | {"metadata": {"name": "a", "namespace": "other"}}), step("POST", pods + "/a/binding", {"metadata": {"name": "a"}, "target": target, "kind": "Pod", "apiVersion": "v1"}), step("POST", pods + "/a/eviction", review("a") | {"apiVersion": "policy/v9"}), step("POST", pods + "/a/eviction", review("a") | {"apiVersion": "policy/v1beta1"}), step("POST", pods + "/a/binding", {"metadata": {"name": "a"}, "target": target | {"apiVersion": "x"}})]
    yield "bindings", [step("POST", "/api/v1/namespaces/{ns}/bindings", {"metadata": {"name": "none"}, "target": target}), step("POST", "/api/v1/namespaces/{ns}/bindings", {"target": target}), step("POST", "/api/v1/namespaces/{ns}/bindings", {"metadata": {"name": "none", "namespace": "other"}, "target": target}), step("GET", "/api/v1/namespaces/{ns}/bindings"), step("GET", pods + "/none/eviction"), step("DELETE", pods + "/none/binding")]
    yield "none-parts", [step("PATCH", pods + "/none/status", {"status": {}}, "merge"), step("PUT", pods + "/none/status", {"metadata": {"name": "none"}}), step("PUT", pods + "/none/status", {"metadata": {"name": "other"}}), step("PATCH", pods + "/none/ephemeralcontainers", {}, "strategic"), step("PATCH", pods + "/none/resize", {}, "strategic"), step("POST", "/api/v1/namespaces/{ns}/serviceaccounts/none/token", {}), step("POST", "/api/v1/namespaces/{ns}/serviceaccounts/none/token", {"metadata": {"name": "other"}}), step("PUT", BASE["dep"][0] + "/none/scale", {"metadata": {"name": "none"}}), step("PUT", "/api/v1/namespaces/none/finalize", {"metadata": {"name": "none"}}), step("PUT", "/api/v1/namespaces/none/status", {"metadata": {"name": "none"}})]
    spaces, space = "/api/v1/namespaces", {"metadata": {"name": "{u}"}}
    finalize = lambda *names: step("PUT", spaces + "/{u}/finalize", {"metadata": {"name": "{u}"}, "spec": {"finalizers": list(names)}})
    yield "namespace-finalize", [step("POST", spaces, space), finalize("abc"), finalize("a b"), finalize("x.io/y"), finalize("kubernetes", "abc", "d"), finalize("orphan"), step("GET", spaces + "/{u}")]
    yield "namespace-spec", [step("POST", spaces, space), step("PATCH", spaces + "/{u}", {"spec": {"finalizers": ["abc"]}}, "merge"), step("PUT", spaces + "/{u}", {"metadata": {"name": "{u}"}, "spec": {"finalizers": ["abc"]}})]
    yield "finalizers-changed", [cm("a"), step("PATCH", CM + "/a", {"metadata": {"finalizers": ["abc"]}}, "merge"), step("PATCH", CM + "/a", {"metadata": {"finalizers": ["x.io/y"]}}, "merge"), step("PATCH", CM + "/a", {"metadata": {"ownerReferences": [{"apiVersion": "a/b/c", "kind": "X", "name": "x", "uid": "u"}]}}, "merge")]
    path, claim = BASE["pvc"]
    bound = {"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}}
    for name, spec in {"smaller": {"resources": {"requests": {"storage": "512Mi"}}}, "same": {"resources": {"requests": {"storage": "1Gi"}}}, "larger": {"resources": {"requests": {"storage": "2Gi"}}}, "attributes": {"volumeAttributesClassName": "x"}}.items():
        yield "pvc-bound-" + name, [step("POST", path, claim), step("PATCH", path + "/a/status", bound, "merge"), step("PATCH", path + "/a", {"spec": spec}, "merge")]
    yield "pvc-bound-recovers", [step("POST", path, claim), step("PATCH", path + "/a/status", bound, "merge"), step("PATCH", path + "/a", {"spec": {"resources": {"requests": {"storage": "3Gi"}}}}, "merge"), step("PATCH", path + "/a", {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}, "merge"), step("PATCH", path + "/a", {"spec": {"resources": {"requests": {"storage": "1Gi"}}}}, "merge")]
    path, job = BASE["job"]
    say = lambda *kinds, **more: step("PATCH", path + "/a/status", {"status": dict({"conditions": [{"type": k, "status": "True"} for k in kinds]}, **more)}, "merge")
    yield "job-success-then-failure", [step("POST", path, job), say("SuccessCriteriaMet"), say("SuccessCriteriaMet", "FailureTarget"), say()]
    yield "job-failure-then-success", [step("POST", path, job), say("FailureTarget"), say("FailureTarget", "SuccessCriteriaMet"), say("FailureTarget", "SuccessCriteriaMet", "Complete", startTime=T0, completionTime=T0)]
    indexed = changed(job, {"spec.completionMode": "Indexed", "spec.completions": 3, "spec.parallelism": 3, "spec.backoffLimitPerIndex": 1})
    yield "job-indexes", [step("POST", path, indexed), say(completedIndexes="0,2"), say(completedIndexes="0,2", failedIndexes="2"), say(failedIndexes="1"), say(failedIndexes="5"), say(failedIndexes="x"), say(failedIndexes="0-2"), say(completedIndexes="3")]
    yield "job-counters", [step("POST", path, job), say(succeeded=2, failed=2), say(succeeded=1, failed=1), say(succeeded=2, failed=2, ready=1), say(uncountedTerminatedPods={"succeeded": ["a"], "failed": ["a"]})]


def resources():
    """What pods ask for, classes of their runtime, scopes of quotas, policies of autoscalers."""
    path, quota = BASE["rq"]
    ask = lambda **spec: step("POST", path + "?dryRun=All", {"metadata": M, "spec": spec})
    rule = lambda scope, operator, *values: dict({"scopeName": scope, "operator": operator}, **({"values": list(values)} if values else {}))
    select = lambda *rules, **hard: ask(hard=hard or {"pods": "1"}, scopeSelector={"matchExpressions": list(rules)})
    yield "quota-selector", [select(rule("PriorityClass", "In", "a")), select(rule("PriorityClass", "In")), select(rule("PriorityClass", "Exists", "a")), select(rule("PriorityClass", "DoesNotExist")), select(rule("PriorityClass", "Gt", "1")), ask(hard={"pods": "1"}, scopeSelector={})]
    yield "quota-selector-scopes", [select(rule("Nope", "Exists")), select(rule("BestEffort", "In", "a")), select(rule("BestEffort", "Exists"), pods="1", cpu="1"), select(rule("PriorityClass", "In", "a", "b"), services="1"), select(rule("VolumeAttributesClass", "In", "a"), persistentvolumeclaims="1"), select(rule("BestEffort", "Exists"), rule("NotBestEffort", "Exists"))]
    yield "quota-scopes", [ask(hard={"services": "1"}, scopes=["Terminating"]), ask(hard={"count/x.y": "1"}, scopes=["Terminating"]), ask(hard={"requests.storage": "1"}, scopes=["VolumeAttributesClass"]), ask(hard={"cpu": "1", "secrets": "1"}, scopes=["NotTerminating", "BestEffort"]), ask(hard={"pods": "1"}, scopes=["Terminating", "NotTerminating"]), ask(hard={"pods": "1"}, scopes=["Nope"]), ask(hard={"requests.hugepages-2Mi": "1", "hugepages-2Mi": "1"}, scopes=["Terminating"])]
    scalers, scaler = BASE["hpa"]
    scale = lambda **behavior: step("POST", scalers + "?dryRun=All", changed(scaler, {"spec.behavior": behavior}))
    yield "scaling-policies", [scale(scaleUp={"policies": []}), scale(scaleUp={}), scale(scaleDown={"policies": None}), scale(scaleDown={"policies": [], "selectPolicy": "Max"}), scale(scaleUp={"policies": []}, scaleDown={"policies": []})]
    pods, both = "/api/v1/namespaces/{ns}/pods", {"cpu": "1", "memory": "1Gi"}
    container = lambda name, requests={}, limits={}, **more: dict({"name": name, "image": "i"}, **({"resources": {k: v for k, v in (("requests", requests), ("limits", limits)) if v}}), **more)
    pod = lambda *containers, **spec: step("POST", pods + "?dryRun=All", {"metadata": M, "spec": dict({"containers": list(containers) or [container("c")]}, **spec)})
    yield "pod-resources", [pod(resources={}), pod(resources={"limits": both}), pod(resources={"requests": {"cpu": "1"}}), pod(container("c", limits=both), resources={}), pod(container("c", limits=both), container("d", {"cpu": "1"}), resources={"limits": {"memory": "4Gi"}})]
    yield "pod-resources-of-containers", [pod(container("c", {"cpu": "200m"}), initContainers=[container("x", {"cpu": "1"}), container("y", {"cpu": "100m"}, restartPolicy="Always"), container("z", {"cpu": "950m"})], resources={"limits": {"cpu": "3"}}), pod(container("c", limits={"cpu": "1", "hugepages-2Mi": "2Mi"}), resources={"limits": {"cpu": "2"}})]
    yield "pod-resources-refused", [pod(container("c", limits=both), resources={"requests": {"cpu": "500m"}}), pod(container("c", limits={"cpu": "2"}), resources={"limits": {"cpu": "1"}}), pod(resources={"limits": {"ephemeral-storage": "1Gi"}}), pod(resources={"limits": {"foo": "1"}}), pod(resources={"limits": {"a.b/c": "1"}}), pod(resources={"requests": {"a.b/c": "1"}}), pod(resources={"limits": both}, os={"name": "windows"}), pod(container("c", limits={"cpu": "1", "hugepages-2Mi": "4Mi"}), resources={"limits": {"cpu": "2", "hugepages-2Mi": "2Mi"}})]
    yield "pod-quality", [pod(container("c", {"cpu": "1000m", "memory": "1024Mi"}, both)), pod(container("c", {"cpu": "0m"})), pod(container("c", limits=both), container("d"))]
    yield "pod-pages", [pod(container("c", limits={"hugepages-2Mi": "2Mi"})), pod(container("c", {"a.b/c": "1"})), pod(container("c", {"cpu": "1", "hugepages-2Mi": "2Mi"}))]
    classes = "/apis/node.k8s.io/v1/runtimeclasses"
    runtime = lambda **more: step("POST", classes, dict({"metadata": U, "handler": "h"}, **more))
    of = lambda **spec: pod(runtimeClassName="{u}", **spec)
    yield "overhead-without-class", [pod(overhead={"cpu": "1"}), pod(runtimeClassName="none")]
    yield "overhead-of-plain-class", [runtime(), of(overhead={"cpu": "1"}), of()]
    yield "overhead-of-class", [runtime(overhead={"podFixed": {"cpu": "100m", "memory": "64Mi"}}), of(), of(overhead={"cpu": "1"}), of(overhead={"cpu": "0.1", "memory": "64Mi"}), of(overhead={"cpu": "100m"})]
    yield "overhead-of-empty-class", [runtime(overhead={}), of(overhead={"cpu": "1"}), of(overhead={})]
    yield "scheduling-of-class", [runtime(scheduling={"nodeSelector": {"a": "b"}, "tolerations": [{"key": "k", "operator": "Exists"}, {"key": "node.kubernetes.io/not-ready", "operator": "Exists"}]}), of(), of(nodeSelector={"a": "c"}), of(nodeSelector={"x": "c"}, tolerations=[{"key": "k", "operator": "Equal", "value": "v", "effect": "NoSchedule"}])]


DETAILS_SCHEMA = {"type": "object", "properties": {
    "d": {"type": "integer", "default": 3}, "t": {"type": "string", "enum": ["x", "y"]}, "nul": {"type": "string", "nullable": True}, "ios": {"x-kubernetes-int-or-string": True}, "replicas": {"type": "integer"}, "m": {"type": "object", "additionalProperties": {"type": "integer"}}, "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    "at": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": {"type": "string"}}, "lm": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": {"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}, "v": {"type": "integer"}, "d": {"type": "string", "default": "dd"}}}},
    "emb": {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}, "embs": {"type": "array", "items": {"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"spec": {"type": "object", "properties": {"a": {"type": "string"}}}}}}}}
NULLS = [{"t": None}, {"ios": None}, {"replicas": None}, {"m": None}, {"m": {"a": None}}, {"any": None}, {"any": {"a": None}}, {"at": None}, {"lm": None}, {"lm": [{"k": "a", "v": None}]}, {"lm": [{"k": "a", "d": None}]}, {"emb": None}, {"nul": None}, {"d": None}]
EMBEDDED = [{}, {"apiVersion": "v1"}, {"apiVersion": "", "kind": ""}, {"apiVersion": "a/b/c", "kind": "a b!"}, {"apiVersion": "v1", "kind": 5}] + [{"apiVersion": "v1", "kind": "X", "metadata": m} for m in (
    None, "x", {}, {"name": "a/b"}, {"name": "A_b"}, {"generateName": "a/b"}, {"namespace": "A b"}, {"namespace": "x"}, {"labels": {"a b": "c", "d": "e f"}}, {"labels": {"a": None}}, {"labels": {"a": 5}}, {"labels": "x"}, {"annotations": {"a b": "c"}}, {"finalizers": ["q"]}, {"finalizers": ["q q"]}, {"finalizers": ["orphan", "foregroundDeletion"]},
    {"ownerReferences": [{}]}, {"generation": -1}, {"unknown": 1}, {"creationTimestamp": "x"}, {"creationTimestamp": "2020-01-01T00:00:00Z", "deletionTimestamp": "2020-01-01T00:00:00Z", "uid": "x", "resourceVersion": "5"})]
MARKS = [{"deletionTimestamp": "2020-01-01T00:00:00Z"}, {"deletionGracePeriodSeconds": 5}, {"deletionTimestamp": "2020-01-01T00:00:00Z", "deletionGracePeriodSeconds": 0}, {"deletionTimestamp": None, "deletionGracePeriodSeconds": None}]
SELECTABLE = [[".spec.replicas", ".spec.t", ".spec.m.a"], [".spec.none"], [".spec.m"], [".spec.ios"], [".spec.t", ".spec.t"], [""], [".spec.lm[0]"], ["spec.t"], [".spec."], [".metadata.name"], [".spec.m.%s" % c for c in "abcdefghi"]]


def details():
    """Nulls that are applied, objects inside of objects, marks of deletions, instants, scales without replicas, selectable fields."""
    wait = [step("WAIT", "/apis/{u}.io/v1")]
    scale = dict(subresources={"status": {}, "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}})
    applied = lambda name, spec, query="", **meta: step("PATCH", G + "/" + name + "?fieldManager=one" + query, foo(spec, name=name, **meta), "apply")
    yield "nulls-new", [definition(DETAILS_SCHEMA, **scale)] + wait + [applied("n%d" % n, spec) for n, spec in enumerate(NULLS)] + [applied("whole", None), applied("meta", {}, labels=None)]
    yield "nulls-changed", [definition(DETAILS_SCHEMA, **scale)] + wait + [applied("a", {"t": "x", "m": {"a": 1}, "lm": [{"k": "a", "v": 1}]})] + [applied("a", spec) for spec in NULLS] + [step("GET", G + "/a")]
    yield "nulls-sent", [definition(DETAILS_SCHEMA, **scale)] + wait + [step("POST", G, foo(spec, name="n%d" % n)) for n, spec in enumerate(NULLS)] + [step("PATCH", G + "/n0", {"spec": {"t": None, "d": None}}, "merge")]
    for where in ("emb", "embs"):
        put = lambda value: {where: [value] if where == "embs" else value}
        yield where + "-new", [definition(DETAILS_SCHEMA)] + wait + [step("POST", G, foo(put(value), name="n%d" % n)) for n, value in enumerate(EMBEDDED)]
        yield where + "-applied", [definition(DETAILS_SCHEMA)] + wait + [applied("n%d" % n, put(value), "&dryRun=All") for n, value in enumerate(EMBEDDED)]
        yield where + "-changed", [definition(DETAILS_SCHEMA)] + wait + [step("POST", G, foo(put({"apiVersion": "v1", "kind": "X"})))] + [step("PATCH", G + "/a", {"spec": put(value)}, "merge") for value in EMBEDDED[:16]]
    for name, path, body in (("cm", CM, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}), ("ing", BASE["ing"][0], dict(BASE["ing"][1], apiVersion="networking.k8s.io/v1", kind="Ingress")), ("foo", G, foo({}))):
        steps = [definition(DETAILS_SCHEMA, **scale)] + wait
        held = changed(body, {"metadata.finalizers": ["x.io/held"], "metadata.name": "held"})
        steps += [step("POST", path, body), step("POST", path, held), step("DELETE", path + "/held")]
        for target, whole in (("a", body), ("held", held)):
            # What is deleted already takes every time of deletion, and its owner: only the other mark is refused.
            for mark in MARKS if target == "a" else MARKS[1:2]:
                steps += [step("PATCH", "%s/%s" % (path, target), {"metadata": mark}, kind) for kind in ("merge",) + (("strategic",) if name != "foo" else ())]
                steps.append(step("PATCH", "%s/%s" % (path, target), [{"op": "add", "path": "/metadata/" + key, "value": value} for key, value in mark.items()], "json"))
                if target == "a" and None not in mark.values():
                    steps.append(step("PATCH", "%s/%s?fieldManager=one&force=true" % (path, target), changed(whole, {"metadata." + key: value for key, value in mark.items()}), "apply"))
                steps += [] if name != "ing" else [step("PATCH", "%s/%s/status" % (path, target), {"metadata": mark}, "merge")]
                if name != "foo":
                    steps.append(step("PUT", "%s/%s" % (path, target), changed(whole, {"metadata." + key: value for key, value in mark.items()})))
        yield "marks-" + name, steps
    yield "revisions", [step("PATCH", CM + "/a?fieldManager=one" + q, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "resourceVersion": "9999"}}, "apply") for q in ("&dryRun=All", "")] + [step("POST", CM + q, {"metadata": {"name": "b", "resourceVersion": "9999"}}) for q in ("?dryRun=All", "")]
    yield "generations", [step("POST", BASE[kind][0], changed(BASE[kind][1], {"metadata.generation": generation})) for kind in ("cm", "role", "lr", "svc", "sts") for generation in (7, -1)]
    yield "instants", [step("POST", BASE["lease"][0] + "?dryRun=All", {"metadata": {"name": "a"}, "spec": {"renewTime": "2020-01-02T03:04:05" + rest}}) for rest in ("Z", ".5Z", ".123456Z", ".123456789Z", ".000000+02:00", ".12345xZ", "")]
    yield "scale", [definition(DETAILS_SCHEMA, **scale)] + wait + [step("POST", G, foo({})), step("GET", G + "/a/scale"), step("PATCH", G + "/a/scale", {"spec": {"replicas": 2}}, "merge"), step("GET", G + "/a/scale"), step("PATCH", G + "/a/scale", {"spec": {"replicas": 0}}, "merge"), step("GET", G + "/a/scale")]
    version = lambda name, paths, **more: {"name": name, "served": True, "storage": name == "v1", "selectableFields": [{"jsonPath": path} for path in paths], "schema": {"openAPIV3Schema": dict({"type": "object", "properties": {"spec": DETAILS_SCHEMA}}, **more)}}
    kinds = lambda *versions: step("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All", {"metadata": {"name": "foos.{u}.io"}, "spec": {"group": "{u}.io", "scope": "Namespaced", "names": {"plural": "foos", "kind": "Foo"}, "versions": list(versions)}})
    yield "selectable", [kinds(version("v1", paths)) for paths in SELECTABLE]
    yield "selectable-versions", [kinds(version("v1", one), version("v2", two, **more)) for one, two in (([".spec.t"], [".spec.t"]), ([".spec.t"], []), ([], [".spec.t"]), ([".spec.t"], [".spec.d"]), ([".spec.none"], [".spec.none"])) for more in ({}, {"description": "another one"})]


def workloads():
    """What workloads and claims say of images, ends, variables, successes and sources."""
    pod = lambda inner={}, **spec: {"metadata": {"labels": {"a": "b"}}, "spec": dict({"containers": [dict({"name": "c", "image": "i"}, **inner)]}, **spec)}
    tried = lambda path, spec: step("POST", path + "?dryRun=All", {"metadata": M, "spec": spec})
    daemons, controllers, jobs, claims, pods = (BASE[kind][0] for kind in ("ds", "rc", "job", "pvc", "pod"))
    daemon = lambda *args, **spec: tried(daemons, {"selector": {"matchLabels": {"a": "b"}}, "template": pod(*args, **spec)})
    blank = {"image": " i"}
    yield "images", [daemon(blank), tried(controllers, {"selector": {"a": "b"}, "template": pod(blank)}), tried(jobs, {"template": {"spec": pod(blank, restartPolicy="Never")["spec"]}}), tried(pods, pod(blank)["spec"]), tried(pods, pod(initContainers=[{"name": "x", "image": "i "}])["spec"])]
    sleep = lambda seconds, where="preStop": {"lifecycle": {where: {"sleep": {"seconds": seconds}}}}
    yield "sleeps", [daemon(sleep(5), terminationGracePeriodSeconds=0), daemon(sleep(5)), daemon(sleep(31)), daemon(sleep(-1)), daemon(sleep(0)), tried(pods, pod(sleep(31, "postStart"))["spec"])]
    yield "variables", [daemon({"env": [{"name": "X", "value": one}, {"name": "X", "value": two}]}) for one, two in (("1", "2"), ("1", "$(X)2"), ("1", "$(X)"), ("1", "1"))] + [daemon({"env": [{"name": "X", "value": "1"}, {"name": "X", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]})]
    success = lambda rules, **spec: tried(jobs, dict({"successPolicy": {"rules": rules}, "template": {"spec": pod(restartPolicy="Never")["spec"]}}, **spec))
    yield "successes", [success([{"succeededCount": 1}]), success([])] + [success(rules, completionMode="Indexed", completions=3) for rules in ([], [{}], [{"succeededCount": 1}], [{"succeededCount": 4}], [{"succeededCount": -1}], [{"succeededIndexes": "0-1"}], [{"succeededIndexes": "0-5"}], [{"succeededIndexes": "x"}], [{"succeededIndexes": "0,2", "succeededCount": 3}], [{"succeededIndexes": "2,0"}], [{"succeededCount": 1}] * 21)]
    source = lambda kind, group=None, name="x", **more: dict({"kind": kind, "name": name}, **({"apiGroup": group} if group is not None else {}), **more)
    claim = lambda query="?dryRun=All", name="a", **spec: step("POST", claims + query, {"metadata": {"name": name}, "spec": dict({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}, **spec)})
    own, snapshot, other = source("PersistentVolumeClaim"), source("VolumeSnapshot", "snapshot.storage.k8s.io"), source("Foo", "x.y")
    yield "sources", [claim(dataSource=one) for one in (own, snapshot, other, {}, source("PersistentVolumeClaim", name=""), source("Foo"))] + [claim(dataSourceRef=one) for one in (own, snapshot, other, source("Foo"), source("Foo", "A_"), source("PersistentVolumeClaim", namespace="n"), source("", ""))] + [claim(dataSource=own, dataSourceRef=other), claim(dataSource=other, dataSourceRef=other)]
    yield "sources-changed", [claim("", dataSource=own), step("PATCH", claims + "/a", {"metadata": {"labels": {"x": "y"}}}, "merge"), step("PATCH", claims + "/a", {"spec": {"dataSource": None, "dataSourceRef": own}}, "merge"), step("GET", claims + "/a")]
    yield "fractions", [claim(resources={"requests": {"storage": "1.5"}}), claim(resources={"requests": {"storage": "1"}, "limits": {"storage": "2500m"}})]
    job = {"metadata": M, "spec": {"template": {"spec": pod(restartPolicy="Never")["spec"]}}}
    yield "jobs-deleted", [step("POST", jobs, job), step("DELETE", jobs + "?dryRun=All"), step("DELETE", jobs + "?dryRun=All&propagationPolicy=Orphan")]
    yield "job-start", [step("POST", jobs, job), step("PATCH", jobs + "/a/status", {"status": {"startTime": T0}}, "merge"), step("PUT", jobs + "/a/status", dict(job, status={})), step("PUT", jobs + "/a/status", job)]


DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

STRICTER = {"n": {"type": "integer"}, "s": {"type": "string"}, "e": {"type": "string"}, "f": {"type": "string"}, "p": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}, "l": {"type": "array", "items": {"type": "string"}},
    "lm": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": {"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}, "v": {"type": "integer"}}}}, "m": {"type": "object", "additionalProperties": {"type": "integer"}},
    "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"need": {"type": "integer"}}}, "alt": {"type": "object", "properties": {"n": {"type": "integer"}, "o": {"type": "integer"}}}, "w": {"type": "object", "properties": {"x": {"type": "object", "properties": {"n": {"type": "integer"}}}}}}


def stricter(rules, spec, steps, status=None, made=None):
    """An object is made, then rules are added to its schema at paths like p.properties.a, then come the steps."""
    def version(rules):
        schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": json.loads(json.dumps(STRICTER))}, "status": {"type": "object", "properties": {"n": {"type": "integer"}, "o": {"type": "integer"}}}}}
        for path, keywords in rules.items():
            level = schema["properties"]
            for name in path.split("."):
                level = level[name]
            level.update(keywords)
        return {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "foos", "kind": "Foo"}
    first = [step("POST", DEFINITIONS, {"metadata": {"name": "foos.{u}.io"}, "spec": {"group": "{u}.io", "scope": "Namespaced", "names": names, "versions": [version({})]}}), step("WAIT", "/apis/{u}.io/v1"), step("POST", G, foo(spec))]
    if status:
        first.append(step("PATCH", G + "/a/status", {"status": status}, "merge"))
    served = dict(step("WAIT", "/apis/{u}.io/v1"), z=3)
    return first + [step("PATCH", DEFINITIONS + "/foos.{u}.io", {"spec": {"versions": [version(rules)]}}, "merge"), served] + steps


def schemas():
    """Objects of before whose schema became stricter, schemas that are not structural, names that are taken."""
    change = lambda patch, dry="?dryRun=All": step("PATCH", G + "/a" + dry, patch, "merge")
    label, at = change({"metadata": {"labels": {"a": "b"}}}), "spec.properties."
    for name, path, keywords, spec, patches in [
        ("minimum", "n", {"minimum": 5}, {"n": 3, "s": "x"}, [{"n": 4}, {"n": 6}, {"s": "y"}]),
        ("pattern", "s", {"pattern": "^a"}, {"s": "x"}, [{"s": "y"}, {"n": 1}]),
        ("enum", "e", {"enum": ["y"]}, {"e": "x"}, [{"e": "z"}, {"n": 1}]),
        ("format", "f", {"format": "date-time"}, {"f": "x"}, [{"f": "z"}, {"n": 1}]),
        ("type", "n", {"type": "string"}, {"n": 3}, [{"n": 4}, {"s": "x"}]),
        ("required", "p", {"required": ["b"]}, {"p": {"a": "1"}}, [{"n": 1}, {"p": {"a": "2"}}, {"p": {"b": "2"}}]),
        ("items", "l", {"maxItems": 1, "items": {"type": "string", "minLength": 2}}, {"l": ["a", "b"]}, [{"n": 1}, {"l": ["b", "a"]}, {"l": ["a", "b", "cc"]}, {"l": ["aa"]}]),
        ("keys", "lm.items.properties.v", {"minimum": 5}, {"lm": [{"k": "a", "v": 1}, {"k": "b", "v": 1}]}, [{"n": 1}, {"lm": [{"k": "c", "v": 5}, {"k": "b", "v": 1}]}, {"lm": [{"k": "b", "v": 1}, {"k": "a", "v": 2}]}]),
        ("keys-max", "lm", {"maxItems": 1}, {"lm": [{"k": "a", "v": 1}, {"k": "b", "v": 1}]}, [{"lm": [{"k": "b", "v": 1}, {"k": "a", "v": 1}]}, {"lm": [{"k": "b", "v": 1}, {"k": "c", "v": 1}]}]),
        ("values", "m.additionalProperties", {"minimum": 5}, {"m": {"x": 1, "y": 1}}, [{"n": 1}, {"m": {"y": 2}}, {"m": {"z": 3}}, {"m": {"x": None}}]),
        ("unknown", "any", {"required": ["need"]}, {"any": {"x": 1}}, [{"n": 1}, {"any": {"x": 2}}, {"any": {"need": 1}}]),
        ("empty", "any", {"required": ["need"]}, {"any": {}}, [{"n": 1}, {"any": {"x": 2}}]),
        ("any-of", "alt", {"anyOf": [{"properties": {"n": {"minimum": 5}}}]}, {"alt": {"n": 1}}, [{"n": 1}, {"alt": {"o": 2}}, {"alt": {"n": 5}}]),
        ("all-of", "alt", {"allOf": [{"properties": {"n": {"minimum": 5}}}]}, {"alt": {"n": 1}}, [{"n": 1}, {"alt": {"o": 2}}]),
        ("one-of", "alt", {"oneOf": [{"properties": {"n": {"minimum": 5}}}, {"required": ["o"]}]}, {"alt": {"n": 1}}, [{"n": 1}, {"alt": {"o": 2}}, {"alt": {"o": 2, "n": 6}}]),
        ("not", "alt", {"not": {"properties": {"n": {"minimum": 1}}}}, {"alt": {"n": 1}}, [{"n": 1}, {"alt": {"o": 2}}, {"alt": {"n": 0}}]),
        ("deep", "w.properties.x.properties.n", {"minimum": 5}, {"w": {"x": {"n": 1}}}, [{"n": 1}, {"w": {"x": {"n": 2}}}, {"w": None}]),
        ("new", "w.properties.x.properties.n", {"minimum": 5}, {}, [{"w": {"x": {"n": 1}}}, {"w": {"x": {"n": 5}}}]),
        ("set", "l", {"x-kubernetes-list-type": "set"}, {"l": ["a", "a"]}, [{"n": 1}, {"l": ["b", "b"]}]),
        ("set-new", "l", {"x-kubernetes-list-type": "set"}, {"l": ["a"]}, [{"l": ["b", "b"]}]),
    ]:
        yield "stricter-" + name, stricter({at + path: keywords}, spec, [label] + [change({"spec": patch}) for patch in patches])
    yield "stricter-root", stricter({"spec": {"required": ["n"]}}, {"s": "x"}, [label, change({"spec": {"s": "y"}}), change({"spec": {"n": 1}})])
    both = {at + "n": {"minimum": 5}, "status.properties.n": {"minimum": 5}}
    yield "stricter-status", stricter(both, {"n": 3}, [step("PATCH", G + "/a/status", {"status": {"o": 1}}, "merge"), step("PATCH", G + "/a/status", {"status": {"n": 4}}, "merge"), step("PATCH", G + "/a/status", {"status": {"n": "x"}}, "merge"), step("PATCH", G + "/a/status", {"status": "x"}, "merge"), label], {"n": 3})
    yield "stricter-ways", stricter(both, {"n": 3}, [step("PATCH", G + "/a", [{"op": "add", "path": "/spec/s", "value": "y"}], "json"), step("PATCH", G + "/a?fieldManager=m", foo({"e": "z"}), "apply"), step("PUT", G + "/a", foo({"n": 3, "s": "q"}, resourceVersion="{rv:7}")), step("PUT", G + "/a", foo({"n": 4}, resourceVersion="{rv:7}")), step("POST", G, foo({"n": 3}, name="b"))], {"n": 3})
    end = lambda finalizers: step("PATCH", G + "/a", {"metadata": {"finalizers": finalizers}}, "merge")
    yield "stricter-end", stricter({at + "n": {"minimum": 5}}, {"n": 3}, [end(["x.io/y"]), step("DELETE", G + "/a"), end(None), step("GET", G + "/a")])

    def tried(schema, group="{u}.io", annotations=None, **more):
        version = dict({"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}, **more)
        metadata = dict({"name": "foos." + group}, **({"annotations": annotations} if annotations else {}))
        return step("POST", DEFINITIONS + "?dryRun=All", {"metadata": metadata, "spec": {"group": group, "scope": "Namespaced", "names": {"plural": "foos", "kind": "Foo"}, "versions": [version]}})
    field = lambda **keywords: tried({"type": "object", "properties": {"a": {k.replace("__", "-"): v for k, v in keywords.items()}}})
    x = "x__kubernetes__"
    number_or_text = [{"type": "integer"}, {"type": "string"}]
    inner = {"b": {"type": "string"}, "c": {"type": "array", "items": {"type": "integer"}}}
    for name, keyword in [("default", {"default": "x"}), ("type", {"type": "string"}), ("title", {"title": "x"}), ("description", {"description": "x"}), ("nullable", {"nullable": True}), ("others", {"additionalProperties": {"minLength": 1}}), ("no-others", {"additionalProperties": False}), ("others-true", {"additionalProperties": True}),
            ("preserve", {"x-kubernetes-preserve-unknown-fields": True}), ("preserve-false", {"x-kubernetes-preserve-unknown-fields": False}), ("int-or-string", {"x-kubernetes-int-or-string": True}), ("embedded", {"x-kubernetes-embedded-resource": True}), ("list-type", {"x-kubernetes-list-type": "atomic"}), ("map-type", {"x-kubernetes-map-type": "atomic"}), ("rules", {"x-kubernetes-validations": [{"rule": "true"}]}), ("pattern", {"pattern": "["}), ("unique", {"uniqueItems": True})]:
        yield "nested-" + name, [field(type="object", properties=inner, **{junctor: one}) for junctor, one in (("anyOf", [keyword]), ("allOf", [{}, keyword]), ("not", keyword), ("oneOf", [{"properties": {"b": keyword}}]), ("allOf", [{"properties": {"c": {"items": keyword}}}]))]
    yield "nested-numbers", [field(anyOf=number_or_text, **{x + "int__or__string": True}), field(allOf=[{"anyOf": number_or_text}, {"pattern": "x"}], **{x + "int__or__string": True}), field(allOf=[{"pattern": "x"}, {"anyOf": number_or_text}], **{x + "int__or__string": True}), field(type="string", anyOf=number_or_text), field(type="string", **{x + "int__or__string": True})]
    yield "nested-complete", [field(type="object", anyOf=[{"properties": {"q": {"minLength": 1}}}]), tried({"type": "object", "anyOf": [{"properties": {"q": {"minLength": 1}}}]}), tried({"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string"}}}, "allOf": [{"not": {"properties": {"a": {"items": {"properties": {"z": {}}}}}}}]}), tried({"type": "object", "properties": {"a": {"type": "string"}}, "oneOf": [{"properties": {"a": {"items": {"minLength": 1}}}}, {"properties": {"metadata": {"required": ["name"]}}}]})]
    keyed = lambda keys, key, required=("k",), **more: field(type="array", items=dict({"type": "object", "required": list(required), "properties": {"k": key}}, **more), **{x + "list__type": "map", x + "list__map__keys": keys})
    text = {"type": "string"}
    yield "lists", [keyed(["k", "k"], text), keyed(["k"], {"type": "object"}), keyed(["k"], {"type": "array", "items": text}), keyed(["z"], text), keyed([], text), keyed(["k"], text, ()), keyed(["k"], dict(text, nullable=True)), keyed(["k"], text, nullable=True), keyed(["k"], text, type="string")] + [
        field(type="array", items=text, **{x + "list__type": "foo"}), field(type="array", items=text, **{x + "list__map__keys": ["k"]}), field(type="array", items=text, **{x + "list__map__keys": ["k"], x + "list__type": "set"}), field(type="array", items={"type": "object"}, **{x + "list__type": "set"}), field(type="array", items={"type": "object", "x-kubernetes-map-type": "atomic"}, **{x + "list__type": "set"}),
        field(type="array", items={"type": "array", "items": text, "x-kubernetes-list-type": "set"}, **{x + "list__type": "set"}), field(type="array", items=[text]), field(type="object", **{x + "list__type": "set"}), field(**{x + "list__type": "set", x + "preserve__unknown__fields": True}), field(type="array", items=dict(text, nullable=True), **{x + "list__type": "set"}), field(type="array", **{x + "list__type": "map", x + "list__map__keys": ["k"]})]
    yield "maps", [field(type="string", **{x + "map__type": "atomic"}), field(**{x + "map__type": "atomic", x + "preserve__unknown__fields": True}), field(type="object", **{x + "map__type": "foo"}), field(type="object", properties=inner, additionalProperties=True), field(type="object", properties=inner, additionalProperties=False), field(type="object", additionalProperties=False), field(type="object", properties=inner, additionalProperties=text)]
    yield "objects", [field(type="object", **{x + "embedded__resource": True}), field(**{x + "embedded__resource": True}), field(type="string", **{x + "embedded__resource": True}), field(type="object", additionalProperties=text, **{x + "embedded__resource": True}), field(type="object", properties={"kind": {"type": "integer"}, "apiVersion": {"type": "integer"}, "metadata": text}, **{x + "embedded__resource": True}), field(**{x + "int__or__string": True, x + "embedded__resource": True}), field(**{x + "int__or__string": True, x + "preserve__unknown__fields": True}), field(type="object", **{x + "preserve__unknown__fields": False})]
    yield "defaults", [field(type="object", properties=inner, default=value) for value in ({"c": 1}, {"z": 1}, {"b": 1}, {"b": "x"}, {"b": "x", "metadata": {}}, "x")] + [field(type="object", additionalProperties={"type": "string", "default": 1}), field(type="array", items={"type": "object", "properties": {"b": {"type": "object", "default": {"q": 1}}}}), field(type="object", default={"q": 1}, **{x + "preserve__unknown__fields": True})]
    yield "keywords", [field(type="string", **{keyword: value}) for keyword, value in (("id", "x"), ("additionalItems", True), ("patternProperties", {"x": text}), ("definitions", {"x": text}), ("dependencies", {"x": ["y"]}), ("$ref", "#/x"))] + [field(type="null"), field(type="foo")]
    for name, more in (("plain", {}), ("status", {"subresources": {"status": {}}})):
        yield "root-" + name, [tried(dict({"type": "object"}, **keywords), **more) for keywords in ({"nullable": True}, {"additionalProperties": text}, {"properties": {"kind": {"type": "integer"}}}, {"properties": {"metadata": text}}, {"properties": {"metadata": {"type": "object", "description": "x"}}}, {"properties": {"metadata": {"type": "object", "properties": {"name": dict(text, pattern="x")}}}}, {"properties": {"metadata": {"type": "object", "required": ["name"]}}}, {"type": "", "x-kubernetes-preserve-unknown-fields": True}, {"anyOf": [{"required": ["spec"]}]}, {"maxProperties": 9}, {"x-kubernetes-embedded-resource": True})]
    columns = lambda **column: tried({"type": "object"}, additionalPrinterColumns=[dict({"name": "a", "type": "string", "jsonPath": ".x"}, **column)])
    yield "columns", [columns(jsonPath=path) for path in ("[", "x", "{.x}", ".", ".x[")] + [columns(format=form) for form in ("odd", "date", "int32")]
    yield "approval", [tried({"type": "object"}, "{u}.k8s.io", {"api-approved.kubernetes.io": text} if text else None) for text in ("", "x", "https://github.com/x/1", "unapproved, x", "unapprovedx", "/x")] + [tried({"type": "object"}, group) for group in ("{u}.kubernetes.io", "{u}-k8s.io", "{u}.x-k8s.io")]
    named = lambda plural, kind, *short: step("POST", DEFINITIONS, {"metadata": {"name": plural + ".{u}.io"}, "spec": {"group": "{u}.io", "scope": "Namespaced", "names": {"plural": plural, "kind": kind, "shortNames": list(short)}, "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}]}})
    seen = lambda plural: step("GET", DEFINITIONS + "/" + plural + ".{u}.io")
    later = dict(step("WAIT", "/apis/{u}.io/v1"), z=3)
    yield "names", [named("gammas", "Gamma", "ga", "g"), dict(step("WAIT", "/apis/{u}.io/v1"), z=1), named("deltas", "Gamma", "d"), named("etas", "Eta", "ga", "gammas"), later, seen("deltas"), seen("etas"), step("DELETE", DEFINITIONS + "/gammas.{u}.io"), dict(step("WAIT", "/apis/{u}.io/v1/namespaces/{ns}/deltas"), z=3), seen("deltas"), seen("etas")]
    yield "names-given-up", [named("gammas", "Gamma", "g"), dict(step("WAIT", "/apis/{u}.io/v1"), z=1), named("deltas", "Delta", "g"), later, seen("deltas"), step("PATCH", DEFINITIONS + "/gammas.{u}.io", {"spec": {"names": {"shortNames": ["x"]}}}, "merge"), dict(step("WAIT", "/apis/{u}.io/v1/namespaces/{ns}/deltas"), z=3), seen("deltas"), seen("gammas")]
    events = CM + "?watch=true&timeoutSeconds=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&fieldSelector=metadata.name%3Da"
    yield "initial-events", [cm("a"), step("GET", events + "&allowWatchBookmarks=false"), step("GET", events + "&allowWatchBookmarks=true&resourceVersion=99999999"), step("GET", events + "&resourceVersion=99999999")]


SERIAL = {"crud", "custom", "rare", "reviews"}


def families():
    out = {f.__name__: list(f()) for f in (crud, apply, strictness, writes, mistakes, updates, patches, ownership, custom, requests, statuses, transitions, parts, queries, patterns, bodies, randoms, refusals, resources, details, workloads, schemas)}
    for scripts in out.values():
        assert len({name for name, _ in scripts}) == len(scripts)
    return out
